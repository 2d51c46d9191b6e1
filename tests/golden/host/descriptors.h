// wgmma operand A, bf16, MN-major: transpose immediate 1, 64 x 16 elements an instruction.
// For a tile at shared byte 0; for a tile at byte b, a multiple of 1024, add b / 16.
static constexpr unsigned long long descriptors[8] = {
    0x4000004000010000ull,  // row 0, K 0
    0x4000004000010080ull,  // row 0, K 16
    0x4000004000010100ull,  // row 0, K 32
    0x4000004000010180ull,  // row 0, K 48
    0x4000004000010200ull,  // row 64, K 0
    0x4000004000010280ull,  // row 64, K 16
    0x4000004000010300ull,  // row 64, K 32
    0x4000004000010380ull,  // row 64, K 48
};

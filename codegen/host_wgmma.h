// CPU models of warpgroup multiplies of 16- and 8-bit elements; operands are read from shared memory through matrix
// descriptors, products are summed in float (the tensor core keeps fewer bits of products of 8-bit elements).
//
// A multiply is one operation of the four warps of a warpgroup: it runs once all have issued it and one waits for its group.
// Until a warp has waited, its accumulator holds no value (a NaN of its own), and operands must stay as they are: they are
// compared with what they were at issue, so also writes through plain pointers show.
#pragma once

namespace la_host {

enum class Operand { f16, bf16, e4m3, e5m2 };
// With `in_registers`, A is four words of each thread: halves 2 q, 2 q + 1 of a row, of the row 8 below, and both 8 on in K.
struct Shape { int n, size; bool transpose_a, transpose_b; Operand type; bool in_registers; };
void multiply(Site site, float* d, const la_u32* words, la_u64 a, la_u64 b, int accumulate, const Shape& shape);
void fence_multiplies(Site site);
void commit_multiplies(Site site);
void wait_for_multiplies(Site site, la_u32 pending);

#ifdef LA_HOST_CORE

// Exponent of 5 bits: the upper half of an f16. Of 4 bits: no infinities, and all bits set is the only NaN.
inline float e4m3_to_float(unsigned char bits)
{
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if ((bits & 127) == 127) return __builtin_nanf("");
    const float value = __builtin_ldexpf((float)(exponent ? mantissa + 8 : mantissa), exponent ? exponent - 10 : -9);
    return bits >> 7 ? -value : value;
}

inline float operand_value(Operand type, const unsigned char* at)
{
    if (type == Operand::e4m3) return e4m3_to_float(*at);
    if (type == Operand::e5m2) return half_to_float((unsigned short)(*at << 8));
    const unsigned short bits = (unsigned short)(at[0] | at[1] << 8);
    return type == Operand::f16 ? half_to_float(bits) : bfloat_to_float(bits);
}

constexpr int MOST_GRANULES = 768, MOST_GROUPS = 64, ACCUMULATORS = 8, MOST_REGISTERS = 128;
constexpr la_u32 UNDEFINED = 0x7FA5A5A5;

// A multiply in flight: 64 rows of A, n of B; the granules that it reads and what was in them when it was issued.
struct Multiply {
    Multiply* next;
    la_u64 a, b;
    Shape shape;
    int accumulate;
    la_u32 number, thread, many, granules[MOST_GRANULES];
    unsigned char bytes[MOST_GRANULES][16];
    unsigned char accumulator[4];  // of each warp
    const la_u32* registers[4 * LA_LANES];  // of each thread, and what was in them
    la_u32 words[4 * LA_LANES][4];
};

// One warp's accumulator, known by its lanes' addresses, while a multiply into it is in flight.
struct Accumulator {
    bool used;
    int registers;
    la_u32 last;  // the last multiply into it
    float* lanes[LA_LANES];
    float values[LA_LANES][MOST_REGISTERS];
};

struct Warpgroup {
    Multiply* first;   // in order of their numbers
    Multiply* read;    // those that have run, while a warp has not waited for them yet, latest first
    la_u32 waited[4];  // what each warp knows to be done
    la_u32 computed;   // multiplies that have run
    la_u32 everyone;   // multiplies that all four warps have issued
    la_u32 issued[4], groups[4], ends[4][MOST_GROUPS];
    bool fenced[4];    // since a wait handed out an accumulator
    Accumulator accumulators[4][ACCUMULATORS];
    float* lanes[4 * LA_LANES];
    const la_u32* words[4 * LA_LANES];
    la_u64 a[4 * LA_LANES], b[4 * LA_LANES];
};

struct Multiplies { Warpgroup groups[MAX_THREADS / 128]; Multiply* spare; };

inline void free_multiplies(void* pointer)
{
    Multiplies& all = *(Multiplies*)pointer;
    for (Warpgroup& group : all.groups) {
        while (Multiply* each = group.first) { group.first = each->next; std::free(each); }
        while (Multiply* each = group.read) { group.read = each->next; std::free(each); }
    }
    while (Multiply* each = all.spare) { all.spare = each->next; std::free(each); }
    std::free(pointer);
}

inline Multiplies& multiplies()
{
    State& s = *here;
    if (!s.multiplies) {
        s.multiplies = std::calloc(1, sizeof(Multiplies));
        s.free_multiplies = free_multiplies;
        if (!s.multiplies) fault(MODEL_LIMIT);
    }
    return *(Multiplies*)s.multiplies;
}

inline Warpgroup& warpgroup() { return multiplies().groups[here->current->thread.x / 128]; }

// Address of element (m, k) of an operand as the tensor core reads it through a matrix descriptor; bytes are K-major.
inline la_u32 operand(la_u64 descriptor, const Shape& shape, int m, int k, bool transposed)
{
    const int size = shape.size, chunk = 16 / size;
    const la_u32 start = (la_u32)(descriptor & 0x3FFF) << 4;
    const la_u32 leading = (la_u32)(descriptor >> 16 & 0x3FFF) << 4, stride = (la_u32)(descriptor >> 32 & 0x3FFF) << 4;
    const la_u32 phase = descriptor >> 49 & 7, mode = descriptor >> 62;
    const int w = mode == 0 ? 1 : 16 >> mode;
    la_u32 offset;
    if (!transposed) offset = m % 8 * 16 * w + m / 8 * stride + (mode ? size * k : k / chunk * leading + k % chunk * size);
    else if (mode) offset = m % (8 * w) * 2 + m / (8 * w) * leading + k % 8 * 16 * w + k / 8 * stride;
    else offset = m % 8 * 2 + m / 8 * stride + k % 8 * 16 + k / 8 * leading;
    const la_u32 address = start + offset;
    return address ^ (((address >> 7) - phase) & (w - 1)) << 4;
}

// Calls visit(row of A or 64 + row of B, k, address) for all elements of the operands in shared memory.
template <class Visit>
inline void operands_of(const Multiply& each, Visit visit)
{
    for (int row = each.shape.in_registers ? 64 : 0; row < 64 + each.shape.n; ++row)
        for (int k = 0; k < 32 / each.shape.size; ++k)
            visit(row, k, row < 64 ? operand(each.a, each.shape, row, k, each.shape.transpose_a)
                                   : operand(each.b, each.shape, row - 64, k, each.shape.transpose_b));
}

// Takes the granules that a multiply reads: they must be there, loaded, fenced, and nobody's until it has run.
inline void take_operands(Multiply& each)
{
    State& s = *here;
    la_u32 last = NOWHERE;
    operands_of(each, [&](int, int, la_u32 address) {
        const la_u32 g = address / 16;
        if (g == last) return;
        last = g;
        shared_bytes(16 * g, 16);
        Granule& granule = s.granules[g];
        undisturbed(granule, 16 * g, false);
        if (write_unfenced(s, granule)) not_fenced(16 * g, granule.writer, NOWHERE);
        for (la_u32 i = each.many; i-- > 0 && i + 64 > each.many;)
            if (each.granules[i] == g) return;
        if (each.many == MOST_GRANULES) return;  // beyond: not watched
        ++granule.multiplies;
        granule.user = (unsigned short)each.thread;
        std::memcpy(each.bytes[each.many], s.arena + 16 * g, 16);
        each.granules[each.many++] = g;
    });
}

inline void release_operands(const Multiply& each)
{
    State& s = *here;
    for (la_u32 i = 0; i < each.many; ++i) {
        const la_u32 g = each.granules[i];
        --s.granules[g].multiplies;
        for (la_u32 b = 0; b < 16; ++b)
            if (s.arena[16 * g + b] != each.bytes[i][b]) {
                Detail detail = about(16 * g + b - s.dynamic_first);
                detail.other = each.thread;
                fault(MULTIPLY_OVERWRITTEN, detail);
            }
    }
}

// c[64][n] += a[64][depth] * b[depth][n], each sum from k = 0 up.
__attribute__((optimize("O3"))) inline void sum_products(float* c, const float* a, const float* b, int n, int depth)
{
    for (int row = 0; row < 64; ++row)
        for (int k = 0; k < depth; ++k) {
            const float left = a[row * depth + k];
            float* const into = c + row * n;
            const float* const right = b + k * n;
            for (int column = 0; column < n; ++column) into[column] += left * right[column];
        }
}

// Reads A from the words of each thread, which must be as they were.
inline void read_registers(const Multiply& each, float* a)
{
    for (int lane = 0; lane < 4 * LA_LANES; ++lane) {
        if (std::memcmp(each.words[lane], each.registers[lane], sizeof each.words[lane])) fault(ACCUMULATOR_TOUCHED);
        const unsigned char* const words = (const unsigned char*)each.words[lane];
        for (int i = 0; i < 8; ++i) {
            const int row = lane / 32 * 16 + lane % 32 / 4 + i / 2 % 2 * 8, k = lane % 4 * 2 + i % 2 + i / 4 * 8;
            a[row * 16 + k] = operand_value(each.shape.type, words + 2 * i);
        }
    }
}

// Reads the operands and adds their product to the values of the accumulators.
inline void compute(Warpgroup& group, const Multiply& each)
{
    static thread_local float a[64 * 32], b[32 * 256], c[64 * 256];
    const int n = each.shape.n, depth = 32 / each.shape.size;
    operands_of(each, [&](int row, int k, la_u32 address) {
        const float value = operand_value(each.shape.type, here->arena + address);
        if (row < 64) a[row * depth + k] = value;
        else b[k * n + row - 64] = value;
    });
    if (each.shape.in_registers) read_registers(each, a);
    const auto place = [n](int warp, int lane, int v) {
        return (lane / 4 + 16 * warp + 8 * (v / 2 % 2)) * n + 2 * (lane % 4) + v % 2 + 8 * (v / 4);
    };
    for (int warp = 0; warp < 4; ++warp)
        for (int lane = 0; lane < 32; ++lane)
            for (int v = 0; v < n / 2; ++v) {
                const float old = group.accumulators[warp][each.accumulator[warp]].values[lane][v];
                c[place(warp, lane, v)] = each.accumulate ? old : 0.0f;
            }
    sum_products(c, a, b, n, depth);
    for (int warp = 0; warp < 4; ++warp)
        for (int lane = 0; lane < 32; ++lane)
            for (int v = 0; v < n / 2; ++v)
                group.accumulators[warp][each.accumulator[warp]].values[lane][v] = c[place(warp, lane, v)];
}

// Whether the registers are as the last wait left them: then they need no fence.
inline bool untouched(const Warpgroup& group, int warp, int registers)
{
    float* const* lanes = group.lanes + LA_LANES * warp;
    for (const Accumulator& each : group.accumulators[warp]) {
        bool same = !each.used && each.registers == registers;
        for (int lane = 0; lane < LA_LANES && same; ++lane)
            same = each.lanes[lane] == lanes[lane] && !std::memcmp(each.values[lane], lanes[lane], sizeof(float) * registers);
        if (same) return true;
    }
    return false;
}

// The warp's accumulator at these addresses: its values are taken and undefined until the wait.
inline unsigned char accumulator_of(Warpgroup& group, int warp, int registers, la_u32 number)
{
    float** const lanes = group.lanes + LA_LANES * warp;
    int at = 0, unused = ACCUMULATORS;
    for (; at < ACCUMULATORS; ++at) {
        const Accumulator& each = group.accumulators[warp][at];
        if (each.used && each.lanes[0] == lanes[0]) break;
        if (!each.used && at < unused) unused = at;
    }
    if (at == ACCUMULATORS) {
        if (unused == ACCUMULATORS) fault(MODEL_LIMIT);
        if (!group.fenced[warp] && !untouched(group, warp, registers)) fault(ACCUMULATOR_UNFENCED);
        at = unused;
        Accumulator& each = group.accumulators[warp][at];
        each.used = true;
        each.registers = registers;
        for (int lane = 0; lane < LA_LANES; ++lane) {
            each.lanes[lane] = lanes[lane];
            std::memcpy(each.values[lane], lanes[lane], sizeof(float) * registers);
            for (int v = 0; v < registers; ++v) std::memcpy(&lanes[lane][v], &UNDEFINED, 4);
        }
    }
    Accumulator& each = group.accumulators[warp][at];
    if (each.registers != registers) fault(ACCUMULATOR_TOUCHED);
    each.last = number;
    return (unsigned char)at;
}

// One warp issues: the first of the four takes the operands, the others must issue the same.
inline void issue(int accumulate, const Shape& shape)
{
    Multiplies& all = multiplies();
    Warpgroup& group = warpgroup();
    const int warp = here->current->thread.x / 32 % 4, lane = LA_LANES * warp;
    const la_u64 a = group.a[lane], b = group.b[lane];
    for (int i = 1; i < LA_LANES; ++i)
        if (group.a[lane + i] != a || group.b[lane + i] != b) fault(MULTIPLIES_DIFFER);
    const la_u32 number = ++group.issued[warp];
    Multiply** at = &group.first;
    while (*at && (*at)->number != number) at = &(*at)->next;
    if (!*at) {
        Multiply* made = all.spare ? all.spare : (Multiply*)std::malloc(sizeof(Multiply));
        if (!made) fault(MODEL_LIMIT);
        if (made == all.spare) all.spare = made->next;
        made->next = nullptr;
        made->a = a;
        made->b = b;
        made->shape = shape;
        made->accumulate = accumulate;
        made->number = number;
        made->thread = here->current->thread.x / 128 * 128;
        made->many = 0;
        *at = made;
        ++here->multiplies_in_flight;
        take_operands(*made);
    }
    Multiply& each = **at;
    const bool same = each.shape.n == shape.n && each.shape.type == shape.type && each.shape.transpose_a == shape.transpose_a
        && each.shape.transpose_b == shape.transpose_b && each.shape.in_registers == shape.in_registers && each.a == a && each.b == b && !each.accumulate == !accumulate;
    if (!same) fault(MULTIPLIES_DIFFER);
    for (int i = lane; shape.in_registers && i < lane + LA_LANES; ++i) {
        each.registers[i] = group.words[i];
        std::memcpy(each.words[i], group.words[i], sizeof each.words[i]);
    }
    each.accumulator[warp] = accumulator_of(group, warp, shape.n / 2, number);
    la_u32 least = number;
    for (la_u32 issued : group.issued) least = issued < least ? issued : least;
    if (least != group.everyone) { group.everyone = least; ++here->run->progress; }
}

void multiply(Site site, float* d, const la_u32* words, la_u64 a, la_u64 b, int accumulate, const Shape& shape)
{
    const la_u32 thread = here->current->thread.x;
    here->current->line = site.line;
    interrupt();
    Warpgroup& group = warpgroup();
    group.lanes[thread % 128] = d;
    group.words[thread % 128] = words;
    group.a[thread % 128] = a;
    group.b[thread % 128] = b;
    all_lanes(site, [&] { issue(accumulate, shape); });
}

inline void commit()
{
    Warpgroup& group = warpgroup();
    const int warp = here->current->thread.x / 32 % 4;
    group.ends[warp][++group.groups[warp] % MOST_GROUPS] = group.issued[warp];
}

// A warp knows that multiplies up to a number are done. Others may still read: a wait is for the warp's own part.
inline void give_back_operands(Multiplies& all, Warpgroup& group, int warp, la_u32 target)
{
    if ((int)(target - group.waited[warp]) > 0) group.waited[warp] = target;
    la_u32 least = target;
    for (la_u32 waited : group.waited) least = (int)(waited - least) < 0 ? waited : least;
    for (Multiply** at = &group.read; *at;) {
        Multiply* each = *at;
        if ((int)(least - each->number) < 0) { at = &each->next; continue; }
        *at = each->next;
        release_operands(*each);
        --here->multiplies_in_flight;
        each->next = all.spare;
        all.spare = each;
    }
}

// One warp waits: what must be done runs, and accumulators that no later multiply adds to get their values.
inline void finish_multiplies(la_u32 pending)
{
    Multiplies& all = multiplies();
    Warpgroup& group = warpgroup();
    const int warp = here->current->thread.x / 32 % 4;
    if (pending >= MOST_GROUPS) fault(MODEL_LIMIT);
    const la_u32 target = group.groups[warp] > pending ? group.ends[warp][(group.groups[warp] - pending) % MOST_GROUPS] : 0;
    while ((int)(group.everyone - target) < 0) block_on(AT_MULTIPLY, group.everyone, group.everyone);
    while ((int)(group.computed - target) < 0) {
        Multiply* each = group.first;
        group.first = each->next;
        compute(group, *each);
        ++group.computed;
        each->next = group.read;
        group.read = each;
    }
    give_back_operands(all, group, warp, target);
    for (Accumulator& each : group.accumulators[warp]) {
        if (!each.used || (int)(target - each.last) < 0) continue;
        each.used = group.fenced[warp] = false;
        for (int lane = 0; lane < LA_LANES; ++lane) {
            for (int v = 0; v < each.registers; ++v)
                if (std::memcmp(&each.lanes[lane][v], &UNDEFINED, 4)) fault(ACCUMULATOR_TOUCHED);
            std::memcpy(each.lanes[lane], each.values[lane], sizeof(float) * each.registers);
        }
    }
}

void fence_multiplies(Site site)
{
    all_lanes(site, [] { warpgroup().fenced[here->current->thread.x / 32 % 4] = true; });
}

void commit_multiplies(Site site) { all_lanes(site, commit); }

void wait_for_multiplies(Site site, la_u32 pending)
{
    interrupt();
    all_lanes(site, [pending] { finish_multiplies(pending); });
}

#endif

}  // namespace la_host

static inline void la_wgmma_fence(unsigned line = __builtin_LINE())
{
    static char place;
    la_host::fence_multiplies({&place, line});
}

static inline void la_wgmma_commit(unsigned line = __builtin_LINE())
{
    static char place;
    la_host::commit_multiplies({&place, line});
}

template <int pending = 0>
static inline void la_wgmma_wait(unsigned line = __builtin_LINE())
{
    static char place;
    la_host::wait_for_multiplies({&place, line}, pending);
}

#define LA_HOST_WGMMA_OF(n, depth, type, defaults)                                                                  \
    template <int transpose_a defaults, int transpose_b defaults>                                                   \
    static inline void la_wgmma_m64n##n##k##depth##_##type(                                                         \
        float (&d)[n / 2], la_u64 a, la_u64 b, int accumulate, unsigned line = __builtin_LINE())                    \
    {                                                                                                               \
        static_assert(depth == 16 || (!transpose_a && !transpose_b), "operands of 8 bits are K-major");             \
        static char place;                                                                                          \
        la_host::multiply({&place, line}, d, nullptr, a, b, accumulate,                                             \
                          {n, 32 / depth, transpose_a, transpose_b, la_host::Operand::type, false});                \
    }
#define LA_HOST_WGMMA_REGISTERS(n, type)                                                                            \
    template <int transpose_b>                                                                                      \
    static inline void la_wgmma_registers_m64n##n##k16_##type(                                                      \
        float (&d)[n / 2], const la_u32 (&a)[4], la_u64 b, int accumulate, unsigned line = __builtin_LINE())        \
    {                                                                                                               \
        static char place;                                                                                          \
        la_host::multiply({&place, line}, d, a, 0, b, accumulate, {n, 2, false, transpose_b, la_host::Operand::type, true}); \
    }
#define LA_HOST_WGMMA(n)                                                             \
    LA_HOST_WGMMA_OF(n, 16, f16, ) LA_HOST_WGMMA_OF(n, 16, bf16, )                   \
    LA_HOST_WGMMA_REGISTERS(n, f16) LA_HOST_WGMMA_REGISTERS(n, bf16)                 \
    LA_HOST_WGMMA_OF(n, 32, e4m3, = 0) LA_HOST_WGMMA_OF(n, 32, e5m2, = 0)
LA_HOST_WGMMA(8) LA_HOST_WGMMA(16) LA_HOST_WGMMA(24) LA_HOST_WGMMA(32) LA_HOST_WGMMA(40) LA_HOST_WGMMA(48)
LA_HOST_WGMMA(56) LA_HOST_WGMMA(64) LA_HOST_WGMMA(72) LA_HOST_WGMMA(80) LA_HOST_WGMMA(88) LA_HOST_WGMMA(96)
LA_HOST_WGMMA(104) LA_HOST_WGMMA(112) LA_HOST_WGMMA(120) LA_HOST_WGMMA(128) LA_HOST_WGMMA(136) LA_HOST_WGMMA(144)
LA_HOST_WGMMA(152) LA_HOST_WGMMA(160) LA_HOST_WGMMA(168) LA_HOST_WGMMA(176) LA_HOST_WGMMA(184) LA_HOST_WGMMA(192)
LA_HOST_WGMMA(200) LA_HOST_WGMMA(208) LA_HOST_WGMMA(216) LA_HOST_WGMMA(224) LA_HOST_WGMMA(232) LA_HOST_WGMMA(240)
LA_HOST_WGMMA(248) LA_HOST_WGMMA(256)

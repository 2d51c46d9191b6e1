// CPU models of the hardware operations that kernel texts call by name.
//
// One fiber per GPU thread, scheduled round-robin, one block at a time. The copy engine is a queue: a bulk copy runs only
// while some thread polls a barrier or waits for a store group, newest first, so a kernel that reads too early sees the old
// bytes. Descriptors are decoded here from their 128 raw bytes, independently of the Python models: box walk, row pitch at
// the swizzle span, XOR on absolute shared addresses, fill, element strides, byte counts. What would fault or hang on the
// hardware becomes a fault number or the kernel's own time-out status.
//
// Few includes: every kernel is compiled with this header, so it must compile fast. Several threads may launch at once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

typedef unsigned int la_u32;
typedef unsigned long long la_u64;
struct alignas(64) la_tensor_map { la_u64 words[16]; };

#define __global__
#define __device__ static
#define __forceinline__ inline
#define __constant__ static const
#define __grid_constant__
#define __restrict__
#define __launch_bounds__(...)

namespace la_host {

enum Fault {
    NONE, SHARED_RANGE, SHARED_ALIGNMENT, GLOBAL_RANGE, INNER_COORDINATE, BAD_DESCRIPTOR, BARRIER_MISUSE, BARRIER_OVERWRITTEN,
    TRANSACTION_RANGE, COPY_IN_FLIGHT, STORE_NOT_COMMITTED, DEADLOCK, NEGATIVE_STORE, LARGE_DIMENSION,
    MODEL_LIMIT, MISALIGNED, RACE, INACTIVE_LANE, BARRIER_PLACES, OPERAND_COPIES, WARP_PLACES, ENDED_LANES,
    ROLE_BARRIER, CLUSTER_RANK
};
enum Wait { RUNS, AT_BLOCK_BARRIER, AT_WARP_BARRIER, AT_ROLE_BARRIER };

struct Index { unsigned x, y, z; };
// A synchronisation point: an address unique to each call in the text, and its line.
struct Site { const void* place; unsigned line; };
inline bool differ(Site a, Site b) { return a.place != b.place || a.line != b.line; }
struct Fiber { ucontext_t context; Index thread; bool done; Wait wait; unsigned line; };
struct Barrier { la_u32 address, count, pending; long long bytes; la_u32 phase; };
struct Copy { bool load; const la_tensor_map* map; int coords[5]; int rank; la_u32 shared, barrier, group; };
struct Region { const unsigned char* first; size_t bytes; };
// One lane's part of one shared-memory instruction. The kth time a thread passes a place of the text is hit k.
// A phase is the span between two block barriers; a step, between two la_sync_warp of the warp within a phase.
struct Access { la_u32 place, hit, block, thread, byte, what, phase, step; };
// Where a fault happened, and the state of the block's threads; `met` is the line where others wait.
struct Told { la_u32 block, thread, byte, at_block_barrier, at_warp_barrier, ended, line, met; };
// Log of the accesses of a launch; disabled if items is null.
struct Trace { Access* items; size_t capacity, count; la_u32* hits; };

constexpr la_u32 RESERVED = 1024;  // shared bytes below the dynamic part, as on sm_90
constexpr la_u32 CAPACITY = 233472 + 65536;
constexpr size_t STACK = 96 * 1024;
constexpr int MAX_THREADS = 1024, MAX_BARRIERS = 64, MAX_COPIES = 8192, MAX_REGIONS = 4096, MAX_PLACES = 4096;
#ifndef LA_LANES
#define LA_LANES 32
#endif

template <class T, int capacity>
struct List {
    T items[capacity];
    int size;
    T* begin() { return items; }
    T* end() { return items + size; }
};

// The state of one launch, owned by the launching thread, so that several threads can run kernels at once.
struct State {
    alignas(1024) unsigned char arena[CAPACITY];
    List<Fiber, MAX_THREADS> fibers;
    Fiber* current;
    ucontext_t scheduler;
    void (*body)(void**);
    void** arguments;
    Index block, grid, block_size;
    la_u32 dynamic_first, dynamic_bytes;
    unsigned waiting, generation, steps[MAX_THREADS];
    Site barrier_site, warp_site[MAX_THREADS / 32];
    la_u32 groups;  // committed groups of stores, of the one thread that stores
    unsigned role_waiting[16], role_threads[16], role_generation[16];
    unsigned warp_waiting[MAX_THREADS / 32], warp_generation[MAX_THREADS / 32], warp_met[MAX_THREADS / 32], progress;
    la_u32 words[MAX_THREADS];  // each thread's shuffle operand
    Trace trace;
    int fault_code;
    Told told;
    List<Barrier, MAX_BARRIERS> barriers;
    List<Copy, MAX_COPIES> queue, uncommitted, committed;
    List<Region, MAX_REGIONS> regions;
};

static thread_local State* here;

inline void yield() { swapcontext(&here->current->context, &here->scheduler); }

inline void fault(Fault code, la_u32 byte = 0, la_u32 met = 0)
{
    here->fault_code = code;
    here->told = {here->block.x, here->current->thread.x, byte, 0, 0, 0, here->current->line, met};
    for (;;) yield();  // never resumed
}

template <class T, int capacity>
inline void append(List<T, capacity>& list, const T& item)
{
    if (list.size == capacity) fault(MODEL_LIMIT);
    list.items[list.size++] = item;
}

inline unsigned live()
{
    unsigned n = 0;
    for (const Fiber& fiber : here->fibers) n += !fiber.done;
    return n;
}

inline void release_if_complete()
{
    State& s = *here;
    if (s.waiting && s.waiting >= live()) { s.waiting = 0; ++s.generation; ++s.progress; }
}

inline void block_barrier(Site site)
{
    const unsigned mine = here->generation;
    here->current->line = site.line;
    if (here->waiting && differ(here->barrier_site, site)) fault(BARRIER_PLACES, 0, here->barrier_site.line);
    here->barrier_site = site;
    ++here->waiting;
    release_if_complete();
    Fiber& fiber = *here->current;
    fiber.wait = AT_BLOCK_BARRIER;
    while (here->generation == mine) yield();
    fiber.wait = RUNS;
}

// Release a warp once all its running threads wait; threads that have exited are not waited for.
inline void release_warp(unsigned warp)
{
    State& s = *here;
    unsigned running = 0;
    for (unsigned t = warp * LA_LANES; t < (warp + 1) * LA_LANES && t < s.block_size.x; ++t)
        running += !s.fibers.items[t].done;
    if (s.warp_waiting[warp] && s.warp_waiting[warp] >= running) {
        s.warp_met[warp] = s.warp_waiting[warp];
        s.warp_waiting[warp] = 0;
        ++s.warp_generation[warp];
        ++s.progress;
    }
}

// All lanes must wait at the same call: otherwise hardware hangs or pairs unrelated calls.
inline void warp_barrier(Site site)
{
    State& s = *here;
    const unsigned warp = s.current->thread.x / LA_LANES, mine = s.warp_generation[warp];
    s.current->line = site.line;
    if (s.warp_waiting[warp] && differ(s.warp_site[warp], site)) fault(WARP_PLACES, 0, s.warp_site[warp].line);
    s.warp_site[warp] = site;
    ++s.warp_waiting[warp];
    release_warp(warp);
    Fiber& fiber = *s.current;
    fiber.wait = AT_WARP_BARRIER;
    while (s.warp_generation[warp] == mine) yield();
    fiber.wait = RUNS;
}

// Barrier 1 to 15 of whole warps: all meet with the same number of threads.
inline void role_barrier(la_u32 id, la_u32 threads, unsigned line)
{
    State& s = *here;
    s.current->line = line;
    if (id == 0 || id > 15 || threads == 0 || threads % LA_LANES) fault(ROLE_BARRIER);
    if (s.role_waiting[id] && s.role_threads[id] != threads) fault(ROLE_BARRIER);
    s.role_threads[id] = threads;
    const unsigned mine = s.role_generation[id];
    if (++s.role_waiting[id] == threads) { s.role_waiting[id] = 0; ++s.role_generation[id]; ++s.progress; }
    Fiber& fiber = *s.current;
    fiber.wait = AT_ROLE_BARRIER;
    while (s.role_generation[id] == mine) yield();
    fiber.wait = RUNS;
}

inline bool takes_part(unsigned thread) { return thread < here->block_size.x && !here->fibers.items[thread].done; }

// As above, for a full-warp instruction: no lane may have exited or be beyond the block.
inline void all_lanes(Site site)
{
    warp_barrier(site);
    if (here->warp_met[here->current->thread.x / LA_LANES] < LA_LANES) fault(ENDED_LANES);
}

inline void sync_warp(Site site)
{
    warp_barrier(site);
    ++here->steps[here->current->thread.x];
}

// True on the lowest lane of the warp that has not exited.
inline bool elect(Site site)
{
    warp_barrier(site);
    unsigned lane = here->current->thread.x / LA_LANES * LA_LANES;
    while (!takes_part(lane)) ++lane;
    const bool chosen = here->current->thread.x == lane;
    warp_barrier(site);
    return chosen;
}

// Every lane of the warp offers a word and reads one from an active lane.
inline la_u32 shuffle(Site site, la_u32 word, la_u32 lane)
{
    State& s = *here;
    const unsigned mine = s.current->thread.x, other = mine / LA_LANES * LA_LANES + lane % LA_LANES;
    s.words[mine] = word;
    s.current->line = site.line;
    if (!takes_part(other)) fault(INACTIVE_LANE);
    all_lanes(site);
    const la_u32 taken = s.words[other];
    warp_barrier(site);
    return taken;
}

inline la_u32 shuffle_xor(Site site, la_u32 word, la_u32 mask)
{
    return shuffle(site, word, here->current->thread.x ^ mask);
}

inline unsigned char* shared_bytes(la_u32 address, la_u32 bytes)
{
    const State& s = *here;
    if (address < s.dynamic_first || (la_u64)address + bytes > (la_u64)s.dynamic_first + s.dynamic_bytes)
        fault(SHARED_RANGE, address - s.dynamic_first);
    return here->arena + address;
}

enum What { LOAD, STORE, READ_MATRIX, WRITE_MATRIX };

// Logs one lane's access; `bytes` is 16 per matrix for matrix instructions.
inline void note(What kind, la_u32 place, la_u32 byte, la_u32 bytes)
{
    Trace& trace = here->trace;
    if (!trace.items) return;
    const la_u32 thread = here->current->thread.x;
    if (place >= MAX_PLACES || trace.count == trace.capacity) fault(MODEL_LIMIT);
    const la_u32 hit = trace.hits[place * MAX_THREADS + thread]++;
    trace.items[trace.count++] = {place, hit, here->block.x, thread, byte, (la_u32)kind << 16 | bytes,
                                  here->generation, here->steps[thread]};
}

template <class Kept, class Value>
inline Value load(la_u32 place, la_u32 byte, unsigned line = __builtin_LINE())
{
    here->current->line = line;
    if (byte % sizeof(Kept)) fault(MISALIGNED, byte);
    Kept kept;
    std::memcpy(&kept, shared_bytes(here->dynamic_first + byte, sizeof kept), sizeof kept);
    note(LOAD, place, byte, sizeof kept);
    return (Value)kept;
}

template <class Kept, class Value>
inline void store(la_u32 place, la_u32 byte, const Value& value, unsigned line = __builtin_LINE())
{
    here->current->line = line;
    if (byte % sizeof(Kept)) fault(MISALIGNED, byte);
    const Kept kept = (Kept)value;
    std::memcpy(shared_bytes(here->dynamic_first + byte, sizeof kept), &kept, sizeof kept);
    note(STORE, place, byte, sizeof kept);
}

// One 16-bit half of a lane's word of a matrix with rows of 16 bytes; transposed, the halves come from two rows.
inline unsigned char* half(const la_u32* rows, int matrix, unsigned lane, int which, bool transposed)
{
    const unsigned row = transposed ? 2 * (lane % 4) + which : lane / 4;
    const unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + which;
    return shared_bytes(here->dynamic_first + rows[8 * matrix + row] + 2 * column, 2);
}

// Lane i supplies the address of 16-byte row i; `words` are the lane's registers, read or written.
template <int matrices, bool transposed, bool reads>
inline void move_matrices(Site site, la_u32 place, la_u32 byte, la_u32* words)
{
    State& s = *here;
    const unsigned mine = s.current->thread.x, lane = mine % 32;
    s.current->line = site.line;
    if (lane < 8u * matrices) {
        if (byte % 16) fault(MISALIGNED, byte);
        note(reads ? READ_MATRIX : WRITE_MATRIX, place, byte, 16 * matrices);
    }
    s.words[mine] = byte;
    all_lanes(site);
    la_u32 rows[32];
    std::memcpy(rows, &s.words[mine - lane], sizeof rows);
    for (int m = 0; m < matrices; ++m)
        for (int which = 0; which < 2; ++which) {
            unsigned char* at = half(rows, m, lane, which, transposed);
            unsigned char* word = (unsigned char*)&words[m] + 2 * which;
            if (reads) std::memcpy(word, at, 2);
            else std::memcpy(at, word, 2);
        }
    warp_barrier(site);
}

inline unsigned char* global_bytes(la_u64 address, la_u32 bytes)
{
    unsigned char* pointer = (unsigned char*)(uintptr_t)address;
    for (const Region& region : here->regions)
        if (pointer >= region.first && pointer + bytes <= region.first + region.bytes) return pointer;
    fault(GLOBAL_RANGE);
    return nullptr;
}

// ---------------------------------------------------------------------------------------------------------- barriers

inline Barrier& barrier_at(la_u32 address)
{
    for (Barrier& barrier : here->barriers)
        if (barrier.address == address) return barrier;
    fault(BARRIER_MISUSE);
    return here->barriers.items[0];
}

inline void settle(Barrier& barrier)
{
    if (barrier.bytes > 1048575 || barrier.bytes < -1048575) fault(TRANSACTION_RANGE);
    if (barrier.pending == 0 && barrier.bytes == 0) { barrier.pending = barrier.count; ++barrier.phase; }
}

// ------------------------------------------------------------------------------------------------------- descriptors

struct Descriptor {
    la_u64 base, dim[5], stride[5];
    la_u32 box[5], step[5], element, span;
    int rank, format;
    bool nan_fill, tf32;
};

inline Descriptor decode(const la_tensor_map* map)
{
    static const int sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 0, 0, 0, 0, 0};
    la_u32 w[32];
    std::memcpy(w, map, sizeof w);
    Descriptor d = {};
    d.base = (la_u64)w[1] << 32 | w[0];
    d.rank = (int)(w[2] >> 4 & 7) + 1;
    d.format = w[2] >> 7 & 15;
    d.element = sizes[d.format];
    d.span = (w[2] >> 13 & 3) ? 16u << (w[2] >> 13 & 3) : 0;
    d.nan_fill = w[2] >> 15 & 1;
    d.tf32 = w[2] >> 16 & 1;
    if ((w[2] & 1) || (w[2] >> 11 & 3) || d.rank > 5 || d.element == 0) fault(BAD_DESCRIPTOR);
    for (int i = 0; i < 5; ++i) {
        d.dim[i] = (la_u64)w[8 + i] + 1;
        d.step[i] = (w[13] >> 3 * i & 7) + 1;
        d.box[i] = (i == 0 ? w[13] >> 24 : w[14] >> 8 * (i - 1) & 255) + 1;
        d.stride[i] = i == 0 ? d.element : ((la_u64)(w[7] >> 4 * (i - 1) & 15) << 32 | w[2 + i]) << 4;
    }
    return d;
}

// The value a load delivers: tf32 rounds to nearest even and maps every NaN to a canonical NaN. The flush-to-zero types
// were measured to deliver denormals unchanged.
inline la_u64 converted(const Descriptor& d, la_u64 bits)
{
    if (!d.tf32) return bits;
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFFE000;
    return (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000;
}

inline void run_copy(const Copy& copy)
{
    const Descriptor d = decode(copy.map);
    if (d.rank != copy.rank) fault(BAD_DESCRIPTOR);
    if (copy.shared % 128) fault(SHARED_ALIGNMENT);
    if ((long long)copy.coords[0] * d.element % 16) fault(INNER_COORDINATE);
    for (int i = 0; i < d.rank; ++i) {
        if (!copy.load && copy.coords[i] < 0) fault(NEGATIVE_STORE);
        if (d.dim[i] > 1ull << 31) fault(LARGE_DIMENSION);
    }
    // A store rounds the inner extent up to whole 16-byte chunks and writes past the tensor there.
    const la_u64 inner_limit = copy.load ? d.dim[0] : (d.dim[0] * d.element + 15) / 16 * 16 / d.element;
    la_u32 n[5] = {d.box[0], 1, 1, 1, 1};  // mode 0 ignores its element stride
    for (int i = 1; i < d.rank; ++i) n[i] = (d.box[i] + d.step[i] - 1) / d.step[i];
    const la_u32 pitch = d.span ? d.span : n[0] * d.element;
    la_u32 row = 0;
    la_u32 i[5];
    for (i[4] = 0; i[4] < n[4]; ++i[4])
    for (i[3] = 0; i[3] < n[3]; ++i[3])
    for (i[2] = 0; i[2] < n[2]; ++i[2])
    for (i[1] = 0; i[1] < n[1]; ++i[1], ++row)
    for (i[0] = 0; i[0] < n[0]; ++i[0]) {
        bool inside = true;
        la_u64 address = d.base;
        for (int j = 0; j < d.rank; ++j) {
            const long long x = (long long)copy.coords[j] + (long long)i[j] * (j ? d.step[j] : 1);
            inside = inside && x >= 0 && (la_u64)x < (j ? d.dim[j] : inner_limit);
            address += (la_u64)x * d.stride[j];
        }
        la_u32 where = copy.shared + row * pitch + i[0] * d.element;
        if (d.span) where ^= (where >> 7 & (d.span / 16 - 1)) << 4;
        unsigned char* local = shared_bytes(where, d.element);
        if (copy.load) {
            for (const Barrier& barrier : here->barriers)
                if (where < barrier.address + 8 && barrier.address < where + d.element) fault(BARRIER_OVERWRITTEN);
            la_u64 bits = d.nan_fill ? 0x7FF77FF77FF77FF7ull : 0;
            if (inside) {
                bits = 0;
                std::memcpy(&bits, global_bytes(address, d.element), d.element);
                bits = converted(d, bits);
            }
            std::memcpy(local, &bits, d.element);
        } else if (inside) {
            std::memcpy(global_bytes(address, d.element), local, d.element);
        }
    }
    if (copy.load) {
        Barrier& barrier = barrier_at(copy.barrier);
        barrier.bytes -= (long long)n[0] * n[1] * n[2] * n[3] * n[4] * d.element;
        settle(barrier);
    }
}

inline void engine_step()
{
    if (here->queue.size) {
        const Copy copy = here->queue.items[--here->queue.size];
        run_copy(copy);
    }
}

// ----------------------------------------------------------------------------------------------------------- floats

inline float half_to_float(unsigned short bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float value;
    if (exponent == 31) value = mantissa ? __builtin_nanf("") : __builtin_inff();
    else if (exponent) value = __builtin_ldexpf((float)(mantissa + 1024), exponent - 25);
    else value = __builtin_ldexpf((float)mantissa, -24);
    return bits >> 15 ? -value : value;
}

inline float bfloat_to_float(unsigned short bits)
{
    const la_u32 wide = (la_u32)bits << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
}

// To 16 bits, to nearest even.
inline unsigned short float_to_half(float value)
{
    la_u32 bits;
    std::memcpy(&bits, &value, 4);
    const unsigned short sign = bits >> 16 & 0x8000;
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) return sign | 0x7E00;
    if (bits >= 0x477FF000) return sign | 0x7C00;  // 65520 and above round to infinity
    if (bits < 0x38800000) {  // below 2^-14: multiples of 2^-24, ties to even
        float size;
        std::memcpy(&size, &bits, 4);
        const float moved = size + 0.5f;  // floats in [0.5, 1) have spacing 2^-24
        std::memcpy(&bits, &moved, 4);
        return sign | (unsigned short)(bits - 0x3F000000);
    }
    return sign | (unsigned short)((bits + 0xFFF + (bits >> 13 & 1) - 0x38000000) >> 13);
}

inline unsigned short float_to_bfloat(float value)
{
    la_u32 bits;
    std::memcpy(&bits, &value, 4);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return bits >> 16 | 0x40;
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

// ----------------------------------------------------------------------------------------------------------- launch

inline void enter()
{
    here->body(here->arguments);
    here->current->done = true;
    ++here->progress;
    release_if_complete();
    release_warp(here->current->thread.x / LA_LANES);
}

struct Launch { unsigned blocks, threads; la_u32 bytes, skew; Trace trace; };

inline void run_block(unsigned index, const Launch& how, char* stacks)
{
    State& s = *here;
    s.block = {index, 0, 0};
    s.waiting = 0;
    std::memset(s.warp_waiting, 0, sizeof s.warp_waiting);
    std::memset(s.role_waiting, 0, sizeof s.role_waiting);
    std::memset(s.steps, 0, sizeof s.steps);
    if (s.trace.items) std::memset(s.trace.hits, 0, sizeof(la_u32) * MAX_PLACES * MAX_THREADS);
    s.groups = 0;
    s.barriers.size = s.queue.size = s.uncommitted.size = s.committed.size = 0;
    std::memset(s.arena, 0xCD, sizeof s.arena);
    s.fibers.size = (int)how.threads;
    for (unsigned t = 0; t < how.threads; ++t) {
        Fiber& fiber = s.fibers.items[t];
        fiber.thread = {t, 0, 0};
        fiber.done = false;
        fiber.wait = RUNS;
        fiber.line = 0;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = &stacks[STACK * t];
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = &s.scheduler;
        makecontext(&fiber.context, enter, 0);
    }
    unsigned idle = 0;
    while (!s.fault_code && live()) {
        const unsigned before = s.progress;
        for (Fiber& fiber : s.fibers) {
            if (fiber.done || s.fault_code) continue;
            s.current = &fiber;
            swapcontext(&s.scheduler, &fiber.context);
        }
        if (s.fault_code) break;
        // A round without progress has polled every waiting thread.
        idle = s.progress == before ? idle + 1 : 0;
        bool all_wait = idle > 0;
        for (const Fiber& fiber : s.fibers) all_wait = all_wait && (fiber.done || fiber.wait != RUNS);
        if (live() && (all_wait || idle > (1u << 20))) {
            s.fault_code = DEADLOCK;
            s.told = {index, 0, 0, 0, 0, 0, 0, 0};
        }
    }
    if (s.fault_code)
        for (const Fiber& fiber : s.fibers) {
            const bool at_block = !fiber.done && fiber.wait == AT_BLOCK_BARRIER;
            const bool at_warp = !fiber.done && fiber.wait == AT_WARP_BARRIER;
            s.told.at_block_barrier += at_block;
            s.told.at_warp_barrier += at_warp;
            s.told.ended += fiber.done;
            if (s.fault_code == DEADLOCK && at_block) s.told.line = fiber.line;
            if (s.fault_code == DEADLOCK && at_warp) s.told.met = fiber.line;
        }
    if (!s.fault_code && s.queue.size) s.fault_code = COPY_IN_FLIGHT;
    if (!s.fault_code && (s.uncommitted.size || s.committed.size)) s.fault_code = STORE_NOT_COMMITTED;
}

inline int launch(
    Launch& how, void (*kernel)(void**), void** arguments, const unsigned char* const* first, const size_t* sizes,
    unsigned count, Told* told)
{
    if ((la_u64)how.bytes + how.skew + RESERVED > CAPACITY) return SHARED_RANGE;
    if (how.threads > MAX_THREADS || count > MAX_REGIONS) return MODEL_LIMIT;
    State* state = (State*)std::aligned_alloc(1024, (sizeof(State) + 1023) / 1024 * 1024);
    char* stacks = (char*)std::malloc(STACK * how.threads);
    const size_t hits = sizeof(la_u32) * MAX_PLACES * MAX_THREADS;
    how.trace.hits = how.trace.items ? (la_u32*)std::malloc(hits) : nullptr;
    int code = MODEL_LIMIT;
    if (state && stacks && (how.trace.hits || !how.trace.items)) {
        state->body = kernel;
        state->arguments = arguments;
        state->grid = {how.blocks, 1, 1};
        state->block_size = {how.threads, 1, 1};
        state->dynamic_first = RESERVED + how.skew;
        state->dynamic_bytes = how.bytes;
        state->generation = state->progress = 0;
        std::memset(state->warp_generation, 0, sizeof state->warp_generation);
        std::memset(state->role_generation, 0, sizeof state->role_generation);
        state->told = {};
        state->trace = how.trace;
        state->fault_code = NONE;
        for (unsigned i = 0; i < count; ++i) state->regions.items[i] = {first[i], sizes[i]};
        state->regions.size = (int)count;
        here = state;
        for (unsigned b = 0; b < how.blocks && !state->fault_code; ++b) run_block(b, how, stacks);
        here = nullptr;
        code = state->fault_code;
        *told = state->told;
        how.trace.count = state->trace.count;
    }
    std::free(how.trace.hits);
    std::free(stacks);
    std::free(state);
    return code;
}

}  // namespace la_host

#define threadIdx (la_host::here->current->thread)
#define blockIdx (la_host::here->block)
#define blockDim (la_host::here->block_size)
#define gridDim (la_host::here->grid)
#define LA_HOST_SITE ({ static char la_place; la_host::Site{&la_place, __LINE__}; })
#define __syncthreads() la_host::block_barrier(LA_HOST_SITE)
#define la_shuffle(...) la_host::shuffle(LA_HOST_SITE, __VA_ARGS__)
#define la_shuffle_xor(...) la_host::shuffle_xor(LA_HOST_SITE, __VA_ARGS__)
#define la_sync_warp() la_host::sync_warp(LA_HOST_SITE)
#define la_elect() la_host::elect(LA_HOST_SITE)
static inline la_u32 la_permute(la_u32 low, la_u32 high, la_u32 selector)
{
    la_u32 word = 0;
    for (int i = 0; i < 4; ++i) {
        const la_u32 from = selector >> 4 * i & 7;
        word |= ((from < 4 ? low >> 8 * from : high >> 8 * (from - 4)) & 0xFF) << 8 * i;
    }
    return word;
}

struct alignas(8) la_words2 { la_u32 word[2]; };
struct alignas(16) la_words4 { la_u32 word[4]; };
#define la_shared_load_b8(...) la_host::load<unsigned char, la_u32>(__COUNTER__, __VA_ARGS__)
#define la_shared_load_b16(...) la_host::load<unsigned short, la_u32>(__COUNTER__, __VA_ARGS__)
#define la_shared_load_b32(...) la_host::load<la_u32, la_u32>(__COUNTER__, __VA_ARGS__)
#define la_shared_load_b64(...) la_host::load<la_words2, la_words2>(__COUNTER__, __VA_ARGS__)
#define la_shared_load_b128(...) la_host::load<la_words4, la_words4>(__COUNTER__, __VA_ARGS__)
#define la_shared_store_b8(...) la_host::store<unsigned char>(__COUNTER__, __VA_ARGS__)
#define la_shared_store_b16(...) la_host::store<unsigned short>(__COUNTER__, __VA_ARGS__)
#define la_shared_store_b32(...) la_host::store<la_u32>(__COUNTER__, __VA_ARGS__)
#define la_shared_store_b64(...) la_host::store<la_words2>(__COUNTER__, __VA_ARGS__)
#define la_shared_store_b128(...) la_host::store<la_words4>(__COUNTER__, __VA_ARGS__)

#define LA_HOST_MATRICES(many, kind, suffix, transposed)                                                            \
    static inline kind la_host_ldmatrix_x##many##suffix(la_host::Site site, la_u32 place, la_u32 byte)              \
    {                                                                                                               \
        kind words;                                                                                                 \
        la_host::move_matrices<many, transposed, true>(site, place, byte, (la_u32*)&words);                         \
        return words;                                                                                               \
    }                                                                                                               \
    static inline void la_host_stmatrix_x##many##suffix(la_host::Site site, la_u32 place, la_u32 byte, kind words)  \
    {                                                                                                               \
        la_host::move_matrices<many, transposed, false>(site, place, byte, (la_u32*)&words);                        \
    }
LA_HOST_MATRICES(1, la_u32, , false)
LA_HOST_MATRICES(2, la_words2, , false)
LA_HOST_MATRICES(4, la_words4, , false)
LA_HOST_MATRICES(1, la_u32, _trans, true)
LA_HOST_MATRICES(2, la_words2, _trans, true)
LA_HOST_MATRICES(4, la_words4, _trans, true)
#define la_ldmatrix_x1(...) la_host_ldmatrix_x1(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_ldmatrix_x2(...) la_host_ldmatrix_x2(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_ldmatrix_x4(...) la_host_ldmatrix_x4(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_ldmatrix_x1_trans(...) la_host_ldmatrix_x1_trans(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_ldmatrix_x2_trans(...) la_host_ldmatrix_x2_trans(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_ldmatrix_x4_trans(...) la_host_ldmatrix_x4_trans(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_stmatrix_x1(...) la_host_stmatrix_x1(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_stmatrix_x2(...) la_host_stmatrix_x2(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_stmatrix_x4(...) la_host_stmatrix_x4(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_stmatrix_x1_trans(...) la_host_stmatrix_x1_trans(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_stmatrix_x2_trans(...) la_host_stmatrix_x2_trans(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
#define la_stmatrix_x4_trans(...) la_host_stmatrix_x4_trans(LA_HOST_SITE, __COUNTER__, __VA_ARGS__)
static inline la_u64 la_cycles() { return 0; }
static inline la_u64 la_nanoseconds() { return 0; }

// ------------------------------------------------------------------------------------------- the names kernels call

#define LA_SPIN_LIMIT 2048

static inline unsigned char* la_shared() { return la_host::here->arena + la_host::here->dynamic_first; }
static inline la_u32 la_shared_address(const void* pointer)
{
    return (la_u32)((const unsigned char*)pointer - la_host::here->arena);
}

static inline void la_mbarrier_init(la_u32 barrier, la_u32 count)
{
    if (barrier % 8 || count == 0) la_host::fault(la_host::BARRIER_MISUSE);
    la_host::shared_bytes(barrier, 8);
    for (la_host::Barrier& old : la_host::here->barriers)
        if (old.address == barrier) la_host::fault(la_host::BARRIER_MISUSE);
    la_host::append(la_host::here->barriers, {barrier, count, count, 0, 0});
}

static inline void la_arrive_expect_tx(la_u32 barrier, la_u32 bytes)
{
    la_host::Barrier& found = la_host::barrier_at(barrier);
    found.bytes += bytes;
    if (found.pending == 0) la_host::fault(la_host::BARRIER_MISUSE);
    --found.pending;
    la_host::settle(found);
}

static inline void la_arrive_many(la_u32 barrier, la_u32 n)
{
    la_host::Barrier& found = la_host::barrier_at(barrier);
    if (n == 0 || n > found.pending) la_host::fault(la_host::BARRIER_MISUSE);
    found.pending -= n;
    la_host::settle(found);
}

static inline void la_arrive(la_u32 barrier) { la_arrive_many(barrier, 1); }

static inline void la_expect_tx(la_u32 barrier, la_u32 bytes)
{
    la_host::Barrier& found = la_host::barrier_at(barrier);
    found.bytes += bytes;
    la_host::settle(found);
}

static inline bool la_wait_parity(la_u32 barrier, la_u32 parity)
{
    for (int spin = 0; spin < LA_SPIN_LIMIT; ++spin) {
        if ((la_host::barrier_at(barrier).phase & 1) != parity) return true;
        la_host::engine_step();
        la_host::yield();
    }
    return false;
}

static inline void la_role_barrier(la_u32 id, la_u32 threads, unsigned line = __builtin_LINE())
{
    la_host::role_barrier(id, threads, line);
}

#define LA_HOST_REGISTERS(name)                                                               \
    template <int n>                                                                          \
    static inline void name(unsigned line = __builtin_LINE())                                 \
    {                                                                                         \
        static_assert(n >= 24 && n <= 256 && n % 8 == 0, "a multiple of 8 from 24 to 256");   \
        static char place;                                                                    \
        la_host::all_lanes({&place, line});                                                   \
    }
LA_HOST_REGISTERS(la_registers_dec)
LA_HOST_REGISTERS(la_registers_inc)

// As cvt.rn: every NaN becomes the canonical one.
static inline la_u32 la_pack_bf16(float low, float high)
{
    const la_u32 first = low == low ? la_host::float_to_bfloat(low) : 0x7FFF;
    return (high == high ? la_host::float_to_bfloat(high) : 0x7FFFu) << 16 | first;
}
static inline la_u32 la_pack_f16(float low, float high)
{
    const la_u32 first = low == low ? la_host::float_to_half(low) : 0x7FFF;
    return (high == high ? la_host::float_to_half(high) : 0x7FFFu) << 16 | first;
}

// Clusters of one block.
static inline la_u32 la_cluster_rank() { return 0; }
static inline void la_cluster_arrive() {}
static inline void la_cluster_wait() {}
static inline void la_arrive_remote(la_u32 barrier, la_u32 rank)
{
    if (rank != 0) la_host::fault(la_host::CLUSTER_RANK);
    la_arrive(barrier);
}

static inline void la_fence_async() {}
static inline void la_fence_tensor_map(const la_tensor_map*) {}

static inline void la_store_commit()
{
    ++la_host::here->groups;
    for (la_host::Copy& copy : la_host::here->uncommitted) {
        copy.group = la_host::here->groups;
        la_host::append(la_host::here->committed, copy);
    }
    la_host::here->uncommitted.size = 0;
}

static inline void la_store_wait()
{
    la_host::yield();  // let the other threads run first
    while (la_host::here->committed.size) {
        const la_host::Copy copy = la_host::here->committed.items[--la_host::here->committed.size];
        la_host::run_copy(copy);
    }
}

// Runs the groups that must be done, oldest first; later ones stay queued, so that overwriting a stage too early shows.
template <int pending>
static inline void la_store_wait_read()
{
    la_host::yield();
    la_host::List<la_host::Copy, la_host::MAX_COPIES>& list = la_host::here->committed;
    int kept = 0;
    for (int i = 0; i < list.size; ++i) {
        const la_host::Copy copy = list.items[i];
        if (copy.group + pending <= la_host::here->groups) la_host::run_copy(copy);
        else list.items[kept++] = copy;
    }
    list.size = kept;
}

#define LA_HOST_COPIES(rank, args, list)                                                                       \
    static inline void la_tma_load_##rank##d(la_u32 destination, const la_tensor_map* map, la_u32 barrier, args) \
    {                                                                                                          \
        la_host::append(la_host::here->queue, {true, map, {list}, rank, destination, barrier, 0});                       \
    }                                                                                                          \
    static inline void la_tma_store_##rank##d(const la_tensor_map* map, la_u32 source, args)                     \
    {                                                                                                          \
        la_host::append(la_host::here->uncommitted, {false, map, {list}, rank, source, 0, 0});                           \
    }                                                                                                          \
    static inline void la_tma_load_multicast_##rank##d(                                                        \
        la_u32 destination, const la_tensor_map* map, la_u32 barrier, la_u32 mask, args)                       \
    {                                                                                                          \
        if (mask != 1) la_host::fault(la_host::CLUSTER_RANK);                                                  \
        la_tma_load_##rank##d(destination, map, barrier, list);                                                \
    }
#define LA_COMMA ,
LA_HOST_COPIES(1, int c0, c0)
LA_HOST_COPIES(2, int c0 LA_COMMA int c1, c0 LA_COMMA c1)
LA_HOST_COPIES(3, int c0 LA_COMMA int c1 LA_COMMA int c2, c0 LA_COMMA c1 LA_COMMA c2)
LA_HOST_COPIES(4, int c0 LA_COMMA int c1 LA_COMMA int c2 LA_COMMA int c3, c0 LA_COMMA c1 LA_COMMA c2 LA_COMMA c3)
LA_HOST_COPIES(5, int c0 LA_COMMA int c1 LA_COMMA int c2 LA_COMMA int c3 LA_COMMA int c4,
               c0 LA_COMMA c1 LA_COMMA c2 LA_COMMA c3 LA_COMMA c4)

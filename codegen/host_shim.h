// CPU models of the hardware operations that kernel texts call by name: threads, their barriers, shared memory.
//
// One fiber per GPU thread; the blocks of a cluster run together, clusters one after the other. With seed 0 threads run
// round-robin; other seeds draw the order of the warps, when one is held back, and where a thread is interrupted. What would
// fault or hang on the hardware becomes a fault number or the kernel's own time-out status. `host_pipelines.h` adds barriers
// in memory and the copy engine, `host_wgmma.h` asynchronous multiplies.
//
// Every kernel is compiled with this header and linked with what is behind LA_HOST_CORE, which is compiled once per process:
// few includes, and declarations only, so that it compiles fast. Several threads may launch at once.
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
    ROLE_BARRIER, CLUSTER_RANK, LOAD_ACCESSED, STORE_OVERWRITTEN, MULTIPLY_OVERWRITTEN, UNFENCED, MULTIPLY_NOT_WAITED,
    ACCUMULATOR_TOUCHED, MULTIPLIES_DIFFER, PHASE_MISSED, CLUSTER_BARRIER,
    ACCUMULATOR_UNFENCED
};
enum Wait { RUNS, AT_BLOCK_BARRIER, AT_WARP_BARRIER, AT_ROLE_BARRIER, AT_CLUSTER_BARRIER, AT_MULTIPLY, AT_MEMORY_BARRIER };
constexpr int WAITS = 7;
constexpr la_u32 NOWHERE = ~0u;

struct Index { unsigned x, y, z; };
// A synchronisation point: an address unique to each call in the text, and its line.
struct Site { const void* place; unsigned line; };
inline bool differ(Site a, Site b) { return a.place != b.place || a.line != b.line; }
// A waiting thread goes on once the counter that it watches has another value, or once it is told to give up.
struct Fiber {
    ucontext_t context;
    Index thread;
    unsigned block;
    bool done, gives_up, cluster_arrived, cluster_waits;
    Wait wait;
    unsigned line;
    const la_u32* watched;
    la_u32 seen, fences, groups, barrier, cluster_seen;
    la_u32 async_groups, met[16];  // groups of cp.async; the meeting of each role barrier, from 1, at which the thread arrived last
};
struct Barrier { la_u32 address, count, pending; long long bytes; la_u32 phase; };
// A bulk copy; stores have the group of their thread, 0 until it is committed; `blocks` are those that a load writes to.
// One with `bytes` loads from `source` in the shared memory of its block.
struct Copy {
    bool load;
    const la_tensor_map* map;
    int coords[5];
    int rank;
    la_u32 shared, barrier, group, thread, line, blocks, source, bytes;
};
// A copy by one thread (cp.async), with the group of its thread, 0 until it is committed; or, with a barrier, an arrival there
// once all copies of its thread before it are done.
struct Async { la_u32 thread, group, barrier, shared, bytes, filled, line; const void* source; };
struct Region { const unsigned char* first; size_t bytes; };
// 16 bytes of shared memory: the last thread that wrote and read them by ordinary instructions and has not fenced since,
// with the number of its fences then; how many asynchronous operations in flight write or read them, and for which thread;
// which of the four words a cp.async in flight writes, and whether one was the last to write: a fence of any thread counts.
struct Granule {
    unsigned short writer, reader, loader, user, loads, stores, multiplies;
    bool written, read, copied;
    unsigned char copies;
    la_u32 write_fences, read_fences, load_barrier;
};
// One lane's part of one shared-memory instruction. The kth time a thread passes a place of the text is hit k.
// A phase is the span between two block barriers; a step, between two la_sync_warp of the warp within a phase.
struct Access { la_u32 place, hit, block, thread, byte, what, phase, step; };
// Where a fault happened: `met` is the line where others wait, `other` the thread whose access it disturbs or lacks a fence,
// `barrier` the one concerned, both of the block `where`. Then how many threads run, are in each kind of wait, and ended.
struct Told { la_u32 block, where, thread, byte, line, met, other, barrier, arrivals, pending, waits[WAITS], ended; };
// A wait that gave up: what its barrier lacks.
struct Starved { la_u32 block, thread, barrier, phase, pending, count, line, parity; long long bytes; };
constexpr int MAX_STARVED = 64;
struct Report { Told told; la_u32 many; Starved starved[MAX_STARVED]; };
// Log of the accesses of a launch; disabled if items is null.
struct Trace { Access* items; size_t capacity, count; la_u32* hits; };

constexpr la_u32 RESERVED = 1024;  // shared bytes below the dynamic part, as on sm_90
constexpr la_u32 CAPACITY = 233472 + 65536;
constexpr size_t STACK = 96 * 1024;
constexpr int MAX_THREADS = 1024, MAX_BARRIERS = 255, MAX_COPIES = 8192, MAX_ASYNCS = 1 << 16, MAX_REGIONS = 4096, MAX_PLACES = 4096, MAX_CLUSTER = 16;
#ifndef LA_LANES
#define LA_LANES 32
#endif

template <class T, int capacity>
struct List {
    T items[capacity];
    int size;
    T* begin() { return items; }
    T* end() { return items + size; }
    void remove(int i)
    {
        for (--size; i < size; ++i) items[i] = items[i + 1];
    }
};

// When bulk copies run, where the seed decides.
enum Engine { NEWEST_FIRST, LATE, EARLY, ANY_TIME };

struct State;
// One launch, owned by the launching thread, so that several threads can run kernels at once.
struct Run {
    ucontext_t scheduler;
    void (*body)(void**);
    void** arguments;
    Index grid;
    la_u32 seed;
    la_u64 random;
    Engine engine;
    bool forced;  // nothing else can go on: a copy must
    Fiber* running;
    int fault_code;
    Report* report;
    Trace trace;
    unsigned progress, cluster, cluster_left, cluster_generation, queued;
    State* states;
    List<Region, MAX_REGIONS> regions;
};

// One block.
struct State {
    alignas(1024) unsigned char arena[CAPACITY];
    Run* run;
    List<Fiber, MAX_THREADS> fibers;
    Fiber* current;
    Index block, block_size;
    la_u32 rank, dynamic_first, dynamic_bytes;
    unsigned waiting, generation, steps[MAX_THREADS];
    Site barrier_site, warp_site[MAX_THREADS / 32];
    unsigned role_waiting[16], role_threads[16], role_generation[16];
    unsigned warp_waiting[MAX_THREADS / 32], warp_generation[MAX_THREADS / 32], warp_met[MAX_THREADS / 32];
    la_u32 words[MAX_THREADS];  // each thread's shuffle operand
    List<Barrier, MAX_BARRIERS> barriers;
    List<Copy, MAX_COPIES> queue, stores;
    List<Async, MAX_ASYNCS> asyncs;
    la_u32 fences;  // of all threads
    Granule granules[CAPACITY / 16];
    void* multiplies;
    void (*free_multiplies)(void*);
    unsigned multiplies_in_flight;
};

extern __thread State* here;

// What a fault is about besides the running thread.
struct Detail { la_u32 byte, met, other, barrier, arrivals, pending, thread, line; };
enum What { LOAD, STORE, READ_MATRIX, WRITE_MATRIX };
struct Launch { unsigned blocks, threads; la_u32 bytes, skew, seed; unsigned cluster; Trace trace; };

void yield();
void interrupted(la_u32 one_of);
// With a seed, other threads may run here.
inline void interrupt(la_u32 one_of = 3)
{
    if (here->run->seed) interrupted(one_of);
}
void fault(Fault code, const Detail& detail);
void fault(Fault code, la_u32 byte = 0, la_u32 met = 0);
void block_barrier(Site site);
void warp_barrier(Site site);
void role_barrier(la_u32 id, la_u32 threads, bool waits, unsigned line);
void all_lanes(Site site);
void sync_warp(Site site);
bool elect(Site site);
la_u32 shuffle(Site site, la_u32 word, la_u32 lane);
la_u32 shuffle_xor(Site site, la_u32 word, la_u32 mask);
unsigned char* shared_bytes(la_u32 address, la_u32 bytes);
void note(What kind, la_u32 place, la_u32 byte, la_u32 bytes);
void move_matrices(Site site, la_u32 place, la_u32 byte, la_u32* words, int matrices, bool transposed, bool reads);
int launch(
    Launch& how, void (*kernel)(void**), void** arguments, const unsigned char* const* first, const size_t* sizes,
    unsigned count, Report* report);

template <class Kept, class Value>
inline Value load(la_u32 place, la_u32 byte, unsigned line = __builtin_LINE())
{
    here->current->line = line;
    interrupt(32);
    if (byte % sizeof(Kept)) fault(MISALIGNED, byte);
    Kept kept;
    const unsigned char* at = shared_bytes(here->dynamic_first + byte, sizeof kept);
    note(LOAD, place, byte, sizeof kept);
    std::memcpy(&kept, at, sizeof kept);
    return (Value)kept;
}

template <class Kept, class Value>
inline void store(la_u32 place, la_u32 byte, const Value& value, unsigned line = __builtin_LINE())
{
    here->current->line = line;
    interrupt(32);
    if (byte % sizeof(Kept)) fault(MISALIGNED, byte);
    const Kept kept = (Kept)value;
    unsigned char* at = shared_bytes(here->dynamic_first + byte, sizeof kept);
    note(STORE, place, byte, sizeof kept);
    std::memcpy(at, &kept, sizeof kept);
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

#ifdef LA_HOST_CORE

__thread State* here;

void yield() { swapcontext(&here->current->context, &here->run->scheduler); }

// A number below `limit`, drawn by the seed.
inline la_u32 draw(la_u32 limit)
{
    la_u64 z = (here->run->random += 0x9E3779B97F4A7C15ull);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return (la_u32)((z ^ z >> 31) >> 32) % limit;
}

void interrupted(la_u32 one_of)
{
    if (draw(one_of)) return;
    ++here->run->progress;
    yield();
}

// Blocks the running thread until a counter has another value than `seen`.
void block_on(Wait wait, const la_u32& counter, la_u32 seen)
{
    Fiber& fiber = *here->current;
    fiber.wait = wait;
    fiber.watched = &counter;
    fiber.seen = seen;
    while (counter == seen) yield();
    fiber.wait = RUNS;
}

Detail about(la_u32 byte)
{
    const Fiber& running = *here->run->running;
    return {byte, 0, NOWHERE, NOWHERE, 0, 0, running.thread.x, running.line};
}

void fault(Fault code, const Detail& detail)
{
    Told& told = here->run->report->told;
    here->run->fault_code = code;
    told.block = here->run->running->block;
    told.where = here->block.x;
    told.thread = detail.thread;
    told.byte = detail.byte;
    told.line = detail.line;
    told.met = detail.met;
    told.other = detail.other;
    told.barrier = detail.barrier;
    told.arrivals = detail.arrivals;
    told.pending = detail.pending;
    for (;;) swapcontext(&here->run->running->context, &here->run->scheduler);  // never resumed
}

void fault(Fault code, la_u32 byte, la_u32 met)
{
    Detail detail = about(byte);
    detail.met = met;
    fault(code, detail);
}

template <class T, int capacity>
inline void append(List<T, capacity>& list, const T& item)
{
    if (list.size == capacity) fault(MODEL_LIMIT);
    list.items[list.size++] = item;
}

inline unsigned live(State& block)
{
    unsigned n = 0;
    for (const Fiber& fiber : block.fibers) n += !fiber.done;
    return n;
}

inline void release_if_complete()
{
    State& s = *here;
    if (s.waiting && s.waiting >= live(s)) { s.waiting = 0; ++s.generation; ++s.run->progress; }
}

void block_barrier(Site site)
{
    const unsigned mine = here->generation;
    here->current->line = site.line;
    if (here->waiting && differ(here->barrier_site, site)) fault(BARRIER_PLACES, 0, here->barrier_site.line);
    here->barrier_site = site;
    ++here->waiting;
    release_if_complete();
    block_on(AT_BLOCK_BARRIER, here->generation, mine);
}

inline unsigned running_lanes(unsigned warp)
{
    unsigned running = 0;
    for (unsigned t = warp * LA_LANES; t < (warp + 1) * LA_LANES && t < here->block_size.x; ++t)
        running += !here->fibers.items[t].done;
    return running;
}

// Release a warp once all its running threads wait; threads that have exited are not waited for.
void release_warp(unsigned warp)
{
    State& s = *here;
    if (s.warp_waiting[warp] && s.warp_waiting[warp] >= running_lanes(warp)) {
        s.warp_met[warp] = s.warp_waiting[warp];
        s.warp_waiting[warp] = 0;
        ++s.warp_generation[warp];
        ++s.run->progress;
    }
}

// All lanes must wait at the same call: otherwise hardware hangs or pairs unrelated calls. The last of a whole warp does
// the `work` of all.
template <class Work>
inline void warp_barrier(Site site, Work work)
{
    State& s = *here;
    const unsigned warp = s.current->thread.x / LA_LANES, mine = s.warp_generation[warp];
    s.current->line = site.line;
    if (s.warp_waiting[warp] && differ(s.warp_site[warp], site)) fault(WARP_PLACES, 0, s.warp_site[warp].line);
    s.warp_site[warp] = site;
    if (++s.warp_waiting[warp] == LA_LANES) work();
    release_warp(warp);
    block_on(AT_WARP_BARRIER, s.warp_generation[warp], mine);
}

void warp_barrier(Site site) { warp_barrier(site, [] {}); }

// Barrier 1 to 15 of whole warps: all meet with the same number of threads, and no thread arrives twice before they have met.
void role_barrier(la_u32 id, la_u32 threads, bool waits, unsigned line)
{
    State& s = *here;
    s.current->line = line;
    if (id == 0 || id > 15 || threads == 0 || threads % LA_LANES || threads > s.block_size.x) fault(ROLE_BARRIER);
    if (s.role_waiting[id] && s.role_threads[id] != threads) fault(ROLE_BARRIER);
    s.role_threads[id] = threads;
    const unsigned mine = s.role_generation[id];
    if (s.current->met[id] == mine + 1) fault(ROLE_BARRIER);
    s.current->met[id] = mine + 1;
    if (++s.role_waiting[id] == threads) { s.role_waiting[id] = 0; ++s.role_generation[id]; ++s.run->progress; }
    if (waits) block_on(AT_ROLE_BARRIER, s.role_generation[id], mine);
    else interrupt();
}

inline bool takes_part(unsigned thread) { return thread < here->block_size.x && !here->fibers.items[thread].done; }

// As above, for a full-warp instruction: no lane may have exited or be beyond the block.
template <class Work>
inline void all_lanes(Site site, Work work)
{
    warp_barrier(site, work);
    if (here->warp_met[here->current->thread.x / LA_LANES] < LA_LANES) fault(ENDED_LANES);
}

void all_lanes(Site site) { all_lanes(site, [] {}); }

void sync_warp(Site site)
{
    warp_barrier(site);
    ++here->steps[here->current->thread.x];
}

// True on the lowest lane of the warp that has not exited.
bool elect(Site site)
{
    warp_barrier(site);
    unsigned lane = here->current->thread.x / LA_LANES * LA_LANES;
    while (!takes_part(lane)) ++lane;
    const bool chosen = here->current->thread.x == lane;
    warp_barrier(site);
    return chosen;
}

// Every lane of the warp offers a word and reads one from an active lane.
la_u32 shuffle(Site site, la_u32 word, la_u32 lane)
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

la_u32 shuffle_xor(Site site, la_u32 word, la_u32 mask)
{
    return shuffle(site, word, here->current->thread.x ^ mask);
}

unsigned char* shared_bytes(la_u32 address, la_u32 bytes)
{
    const State& s = *here;
    if (address < s.dynamic_first || (la_u64)address + bytes > (la_u64)s.dynamic_first + s.dynamic_bytes)
        fault(SHARED_RANGE, address - s.dynamic_first);
    return here->arena + address;
}

inline bool unfenced(const State& s, unsigned short thread, la_u32 fences) { return s.fibers.items[thread].fences == fences; }

inline bool write_unfenced(const State& s, const Granule& granule)
{
    if (granule.copied) return s.fences == granule.write_fences;
    return granule.written && unfenced(s, granule.writer, granule.write_fences);
}

// The words of its granule that an access covers, a bit each.
inline unsigned words_of(la_u32 address, la_u32 bytes)
{
    const unsigned first = address % 16 / 4, last = (address % 16 + bytes - 1) / 4;
    return ((2u << last) - (1u << first)) & 15;
}

void disturbed(const Granule& granule, la_u32 address, la_u32 barrier)
{
    Detail detail = about(address - here->dynamic_first);
    const bool loads = granule.loads || granule.copies;
    detail.other = loads ? granule.loader : granule.user;
    if (granule.loads) barrier = granule.load_barrier;
    if (barrier != NOWHERE) detail.barrier = barrier - here->dynamic_first;
    fault(loads ? LOAD_ACCESSED : granule.stores ? STORE_OVERWRITTEN : MULTIPLY_OVERWRITTEN, detail);
}

// Faults where a write to words of a granule, or a read, meets an asynchronous operation in flight; of a load with its barrier.
inline void undisturbed(const Granule& granule, la_u32 address, bool writes, la_u32 barrier = NOWHERE, unsigned words = 15)
{
    if (granule.copies & words) disturbed(granule, address, barrier);
    if (granule.loads || (writes && (granule.stores || granule.multiplies))) disturbed(granule, address, barrier);
}

void not_fenced(la_u32 address, la_u32 thread, la_u32 barrier)
{
    Detail detail = about(address - here->dynamic_first);
    detail.other = thread;
    if (barrier != NOWHERE) detail.barrier = barrier - here->dynamic_first;
    fault(UNFENCED, detail);
}

// Notes an ordinary access of one thread to bytes of one granule; of several without a fence since, the first stays.
void touch(la_u32 address, la_u32 bytes, bool writes)
{
    State& s = *here;
    Granule& granule = s.granules[address / 16];
    undisturbed(granule, address, writes, NOWHERE, words_of(address, bytes));
    if (writes && granule.copied) granule.copied = granule.written = false;
    bool& seen = writes ? granule.written : granule.read;
    unsigned short& last = writes ? granule.writer : granule.reader;
    la_u32& fences = writes ? granule.write_fences : granule.read_fences;
    if (seen && unfenced(s, last, fences)) return;
    seen = true;
    last = (unsigned short)s.current->thread.x;
    fences = s.current->fences;
}

// Logs one lane's access; `bytes` is 16 per matrix for matrix instructions.
void note(What kind, la_u32 place, la_u32 byte, la_u32 bytes)
{
    touch(here->dynamic_first + byte, bytes < 16 ? bytes : 16, kind == STORE || kind == WRITE_MATRIX);
    Trace& trace = here->run->trace;
    if (!trace.items) return;
    const la_u32 thread = here->current->thread.x;
    if (place >= MAX_PLACES || trace.count == trace.capacity) fault(MODEL_LIMIT);
    const la_u32 hit = trace.hits[place * MAX_THREADS + thread]++;
    trace.items[trace.count++] = {place, hit, here->block.x, thread, byte, (la_u32)kind << 16 | bytes,
                                  here->generation, here->steps[thread]};
}

// One 16-bit half of a lane's word of a matrix with rows of 16 bytes; transposed, the halves come from two rows.
inline unsigned char* half(const la_u32* rows, int matrix, unsigned lane, int which, bool transposed)
{
    const unsigned row = transposed ? 2 * (lane % 4) + which : lane / 4;
    const unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + which;
    return shared_bytes(here->dynamic_first + rows[8 * matrix + row] + 2 * column, 2);
}

// Lane i supplies the address of 16-byte row i; `words` are the lane's registers, read or written.
void move_matrices(Site site, la_u32 place, la_u32 byte, la_u32* words, int matrices, bool transposed, bool reads)
{
    State& s = *here;
    const unsigned mine = s.current->thread.x, lane = mine % 32;
    s.current->line = site.line;
    if (lane < 8u * (unsigned)matrices) {
        if (byte % 16) fault(MISALIGNED, byte);
        shared_bytes(s.dynamic_first + byte, 16);
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

// ----------------------------------------------------------------------------------------------------------- launch

void release_cluster()
{
    Run& run = *here->run;
    if (--run.cluster_left) return;
    for (unsigned r = 0; r < run.cluster; ++r)
        for (Fiber& fiber : run.states[r].fibers)
            if (!fiber.done) { fiber.cluster_arrived = false; ++run.cluster_left; }
    ++run.cluster_generation;
    ++run.progress;
}

inline void enter()
{
    Run& run = *here->run;
    run.body(run.arguments);
    Fiber& fiber = *here->current;
    fiber.done = true;
    ++run.progress;
    if (!fiber.cluster_arrived) release_cluster();
    release_if_complete();
    release_warp(fiber.thread.x / LA_LANES);
}

void start_block(State& s, Run& run, unsigned index, const Launch& how, char* stacks)
{
    s.run = &run;
    s.block = {index, 0, 0};
    s.rank = index % how.cluster;
    s.block_size = {how.threads, 1, 1};
    s.dynamic_first = RESERVED + how.skew;
    s.dynamic_bytes = how.bytes;
    s.waiting = s.generation = s.multiplies_in_flight = 0;
    std::memset(s.warp_waiting, 0, sizeof s.warp_waiting);
    std::memset(s.warp_generation, 0, sizeof s.warp_generation);
    std::memset(s.role_waiting, 0, sizeof s.role_waiting);
    std::memset(s.role_generation, 0, sizeof s.role_generation);
    std::memset(s.steps, 0, sizeof s.steps);
    std::memset(s.arena, 0xCD, sizeof s.arena);
    std::memset(s.granules, 0, sizeof(Granule) * ((s.dynamic_first + s.dynamic_bytes + 15) / 16));
    s.barriers.size = s.queue.size = s.stores.size = s.asyncs.size = 0;
    s.fences = 0;
    s.fibers.size = (int)how.threads;
    for (unsigned t = 0; t < how.threads; ++t) {
        Fiber& fiber = s.fibers.items[t];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = &stacks[STACK * (s.rank * how.threads + t)];
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = &run.scheduler;
        makecontext(&fiber.context, enter, 0);
        fiber.thread = {t, 0, 0};
        fiber.block = index;
        fiber.done = fiber.gives_up = fiber.cluster_arrived = fiber.cluster_waits = false;
        fiber.wait = RUNS;
        fiber.line = 0;
        fiber.fences = fiber.groups = fiber.async_groups = 0;
        std::memset(fiber.met, 0, sizeof fiber.met);
    }
}

inline bool ready(const Fiber& fiber)
{
    const Run& run = *here->run;
    if (fiber.wait == RUNS || *fiber.watched != fiber.seen || fiber.gives_up) return true;
    const bool polled = run.forced || run.engine == NEWEST_FIRST || run.engine == ANY_TIME;
    return fiber.wait == AT_MEMORY_BARRIER && run.queued && polled;
}

// Resumes the threads of a warp that can go on, and returns how many.
unsigned resume(State& s, unsigned warp, bool backwards)
{
    unsigned resumed = 0;
    for (unsigned i = 0; i < LA_LANES; ++i) {
        const unsigned t = warp * LA_LANES + (backwards ? LA_LANES - 1 - i : i);
        here = &s;
        if (t >= s.block_size.x || s.run->fault_code) continue;
        Fiber& fiber = s.fibers.items[t];
        if (fiber.done || !ready(fiber)) continue;
        s.current = s.run->running = &fiber;
        ++resumed;
        swapcontext(&s.run->scheduler, &fiber.context);
    }
    return resumed;
}

// Nothing can go on: every wait at a barrier in memory gives up. Returns whether there was one; the first time they are told.
bool give_up(Run& run)
{
    Report& report = *run.report;
    bool any = false;
    const bool first = report.many == 0;
    for (unsigned r = 0; r < run.cluster; ++r) {
        State& s = run.states[r];
        for (Fiber& fiber : s.fibers) {
            if (fiber.done || fiber.wait != AT_MEMORY_BARRIER) continue;
            any = fiber.gives_up = true;
            if (!first) continue;
            la_u32 same = 0;
            while (same < report.many && !(report.starved[same].block == s.block.x && report.starved[same].barrier + s.dynamic_first
                   == fiber.barrier && report.starved[same].thread / LA_LANES == fiber.thread.x / LA_LANES)) ++same;
            if (same < report.many || report.many == MAX_STARVED) continue;
            for (const Barrier& b : s.barriers)
                if (b.address == fiber.barrier)
                    report.starved[report.many++] = {s.block.x, fiber.thread.x, b.address - s.dynamic_first, b.phase, b.pending,
                                                     b.count, fiber.line, b.phase & 1, b.bytes};
        }
    }
    return any;
}

void count_waits(Run& run)
{
    Told& told = run.report->told;
    for (unsigned r = 0; r < run.cluster; ++r)
        for (const Fiber& fiber : run.states[r].fibers) {
            if (fiber.done) { ++told.ended; continue; }
            ++told.waits[fiber.wait];
            if (run.fault_code != DEADLOCK || fiber.wait == RUNS) continue;
            la_u32& line = fiber.wait == AT_WARP_BARRIER ? told.met : told.line;
            line = fiber.line;
        }
}

void end_fault(State& s, Fault code, la_u32 thread, la_u32 line, la_u32 barrier)
{
    if (s.run->fault_code) return;
    s.run->fault_code = code;
    Told& told = s.run->report->told;
    told = {};
    told.block = told.where = s.block.x;
    told.thread = thread;
    told.line = line;
    told.other = NOWHERE;
    told.barrier = barrier;
}

// The order of the warps of a round: as they are numbered, or drawn, with some that lag behind for a while.
struct Order {
    unsigned many, round, warps[MAX_CLUSTER * MAX_THREADS / 32], lag[MAX_CLUSTER * MAX_THREADS / 32];
    void next()
    {
        static const unsigned lags[5] = {1, 1, 2, 8, 32};
        if (round++ % 32 == 0)
            for (unsigned i = 0; i < many; ++i) lag[i] = lags[draw(5)];
        for (unsigned i = many; i > 1; --i) {
            const unsigned j = draw(i), kept = warps[i - 1];
            warps[i - 1] = warps[j];
            warps[j] = kept;
        }
    }
};

inline void run_cluster(unsigned first, const Launch& how, Run& run, char* stacks)
{
    static thread_local Order order;
    run.cluster_left = how.threads * how.cluster;
    run.queued = 0;
    run.forced = false;
    for (unsigned r = 0; r < how.cluster; ++r) start_block(run.states[r], run, first + r, how, stacks);
    if (run.trace.items) std::memset(run.trace.hits, 0, sizeof(la_u32) * MAX_PLACES * MAX_THREADS);
    here = run.states;
    const unsigned warps = (how.threads + LA_LANES - 1) / LA_LANES;
    order.many = warps * how.cluster;
    order.round = 0;
    for (unsigned i = 0; i < order.many; ++i) order.warps[i] = i;
    unsigned idle = 0, surrenders = 0;
    bool all = !run.seed;  // whether the round leaves no warp out
    for (;;) {
        bool running = false;
        for (unsigned r = 0; r < how.cluster; ++r) running = running || live(run.states[r]);
        if (!running || run.fault_code) break;
        const unsigned before = run.progress;
        unsigned resumed = 0;
        if (run.seed) order.next();
        for (unsigned i = 0; i < order.many && !run.fault_code; ++i) {
            const unsigned which = order.warps[i];
            if (!all && draw(order.lag[which])) continue;
            resumed += resume(run.states[which / warps], which % warps, run.seed && draw(2));
        }
        if (run.fault_code) break;
        idle = run.progress == before ? idle + 1 : 0;
        const bool stuck = all && !resumed;
        all = !run.seed || !resumed;
        if (!stuck && idle <= 2048) continue;
        all = true;
        if (run.queued && !run.forced) run.forced = true;
        else if (surrenders < 4096 && give_up(run)) { ++surrenders; idle = 0; }
        else if (stuck || idle > (1u << 20)) end_fault(run.states[0], DEADLOCK, 0, 0, NOWHERE);
    }
    here = run.states;
    if (run.fault_code) count_waits(run);
    for (unsigned r = 0; r < how.cluster; ++r) {
        State& s = run.states[r];
        const Copy& load = s.queue.items[0];
        if (s.queue.size) end_fault(s, COPY_IN_FLIGHT, load.thread, load.line, load.barrier - s.dynamic_first);
        if (s.asyncs.size) end_fault(s, COPY_IN_FLIGHT, s.asyncs.items[0].thread, s.asyncs.items[0].line, NOWHERE);
        if (s.stores.size) end_fault(s, STORE_NOT_COMMITTED, s.stores.items[0].thread, s.stores.items[0].line, NOWHERE);
        if (s.multiplies_in_flight) end_fault(s, MULTIPLY_NOT_WAITED, 0, 0, NOWHERE);
        if (s.multiplies) s.free_multiplies(s.multiplies);
        s.multiplies = nullptr;
    }
}

int launch(
    Launch& how, void (*kernel)(void**), void** arguments, const unsigned char* const* first, const size_t* sizes,
    unsigned count, Report* report)
{
    if ((la_u64)how.bytes + how.skew + RESERVED > CAPACITY) return SHARED_RANGE;
    if (how.threads > MAX_THREADS || count > MAX_REGIONS || how.cluster > MAX_CLUSTER) return MODEL_LIMIT;
    Run* run = (Run*)std::calloc(1, sizeof(Run));
    State* states = (State*)std::aligned_alloc(1024, (sizeof(State) + 1023) / 1024 * 1024 * how.cluster);
    char* stacks = (char*)std::malloc(STACK * how.threads * how.cluster);
    const size_t hits = sizeof(la_u32) * MAX_PLACES * MAX_THREADS;
    how.trace.hits = how.trace.items ? (la_u32*)std::malloc(hits) : nullptr;
    int code = MODEL_LIMIT;
    if (run && states && stacks && (how.trace.hits || !how.trace.items)) {
        run->body = kernel;
        run->arguments = arguments;
        run->grid = {how.blocks, 1, 1};
        run->seed = how.seed;
        run->random = how.seed;
        run->engine = how.seed ? (Engine)(1 + how.seed % 3) : NEWEST_FIRST;
        run->cluster = how.cluster;
        run->states = states;
        run->report = report;
        run->trace = how.trace;
        for (unsigned r = 0; r < how.cluster; ++r) states[r].multiplies = nullptr;
        for (unsigned i = 0; i < count; ++i) run->regions.items[i] = {first[i], sizes[i]};
        run->regions.size = (int)count;
        for (unsigned b = 0; b < how.blocks && !run->fault_code; b += how.cluster) run_cluster(b, how, *run, stacks);
        here = nullptr;
        code = run->fault_code;
        how.trace.count = run->trace.count;
    }
    std::free(how.trace.hits);
    std::free(stacks);
    std::free(states);
    std::free(run);
    return code;
}

#endif

}  // namespace la_host

#define threadIdx (la_host::here->current->thread)
#define blockIdx (la_host::here->block)
#define blockDim (la_host::here->block_size)
#define gridDim (la_host::here->run->grid)
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
        la_host::move_matrices(site, place, byte, (la_u32*)&words, many, transposed, true);                         \
        return words;                                                                                               \
    }                                                                                                               \
    static inline void la_host_stmatrix_x##many##suffix(la_host::Site site, la_u32 place, la_u32 byte, kind words)  \
    {                                                                                                               \
        la_host::move_matrices(site, place, byte, (la_u32*)&words, many, transposed, false);                        \
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

static inline unsigned char* la_shared() { return la_host::here->arena + la_host::here->dynamic_first; }
static inline la_u32 la_shared_address(const void* pointer)
{
    return (la_u32)((const unsigned char*)pointer - la_host::here->arena);
}

static inline void la_role_barrier(la_u32 id, la_u32 threads, unsigned line = __builtin_LINE())
{
    la_host::role_barrier(id, threads, true, line);
}
static inline void la_role_arrive(la_u32 id, la_u32 threads, unsigned line = __builtin_LINE())
{
    la_host::role_barrier(id, threads, false, line);
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

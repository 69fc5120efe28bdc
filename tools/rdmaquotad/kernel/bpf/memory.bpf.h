// Tables in plain memory, addressed by kernel addresses; changes that found no room; events for the sidecar.
#pragma once

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} events SEC(".maps");

// Each open file is in one of the `opener_probes` entries from the one that its address hashes to.
struct kernel_use openers[opener_slots];

u64 lost;  // changes that found no room

static __always_inline void lose(void) { __sync_fetch_and_add(&lost, 1); }

static void tell(u32 ended, u32 pid) {
    struct kernel_event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
    if (!event) return lose();
    event->ended = ended;
    event->pid = pid;
    bpf_ringbuf_submit(event, 0);
}

// A thread by its address, which nobody chooses, as whoever wants to meet another in a table may choose a thread's id.
static __always_inline u64 current_thread(void) { return bpf_get_current_task(); }

static __always_inline u32 current_pid(void) { return bpf_get_current_pid_tgid() >> 32; }

// The verifier rejects arithmetic on kernel addresses; a 32-bit move makes one a scalar.
static __always_inline u32 lower_half(u64 address) {
    u32 half;
    asm volatile("%0 = %1" : "=w"(half) : "w"((u32)address));
    return half;
}

// The same number, of which the compiler knows nothing any more: so it is compared itself, not one that it was made from, and
// the verifier learns its bound.
static __always_inline u32 opaque(u32 number) {
    asm volatile("" : "+w"(number));
    return number;
}

// The remainder by a constant power of two. A compiler that sees where a `%` is used may write a comparison for it, of which
// the verifier learns no bound.
static __always_inline u32 modulo(u32 number, u32 power) {
    asm volatile("%0 &= %1" : "+w"(number) : "i"(power - 1));
    return number;
}

// The index to try as number `probe` for an address, in a table of `slots`, a power of two. Of an address, the lowest
// `same_bits` tell nothing.
static __always_inline u32 slot_of(u32 address, u32 same_bits, u32 slots, u32 probe) {
    return modulo((address >> same_bits) * 0x9e3779b1U / (~0U / slots + 1) + probe, slots);
}

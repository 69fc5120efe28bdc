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

static __always_inline u32 current_pid(void) { return bpf_get_current_pid_tgid() >> 32; }

// The verifier rejects arithmetic on kernel addresses; a 32-bit move makes one a scalar.
static __always_inline u32 lower_half(u64 address) {
    u32 half;
    asm volatile("%0 = %1" : "=w"(half) : "w"((u32)address));
    return half;
}

// The index to try as number `probe` for an address, in a table of `slots`, a power of two. Of an address, the lowest
// `same_bits` tell nothing.
static __always_inline u32 slot_of(u32 address, u32 same_bits, u32 slots, u32 probe) {
    return ((address >> same_bits) * 0x9e3779b1U / (~0U / slots + 1) + probe) % slots;
}

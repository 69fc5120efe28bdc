// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter's command queue: what creates, changes or destroys something takes a slot for a while, first come, first
 * served. Off while both times are 0. Slots are freed and handed on by the timer's interrupt, since an adapter does not
 * wait until the process whose command has ended gets a processor.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/spinlock.h>

#include "mlx5sim.h"

struct queued_command {
	struct list_head waiting;
	struct hrtimer timer;
	struct completion done;
	u64 ns;
};

static u32 slots = 32;
static u32 command_us;
static u32 page_ns;

/* Guards the list of commands that wait for a slot, and `busy`, the number of slots in use. */
static DEFINE_SPINLOCK(lock);
static LIST_HEAD(waiting);
static u32 busy;

/* Commands that an adapter does not see, and queries. */
static bool passes_by(enum sim_command command)
{
	switch (command) {
	case sim_query_device:
	case sim_query_port:
	case sim_create_ah:
	case sim_destroy_ah:
	case sim_query_qp:
	case sim_query_srq:
	case sim_read_counters:
	case sim_devx_query:
		return true;
	default:
		return false;
	}
}

/* The caller holds the lock. */
static void fill_slots(void)
{
	struct queued_command *next;

	while (busy < max(READ_ONCE(slots), 1U)) {
		next = list_first_entry_or_null(&waiting, struct queued_command, waiting);
		if (!next)
			return;
		list_del(&next->waiting);
		++busy;
		hrtimer_start(&next->timer, ns_to_ktime(next->ns), HRTIMER_MODE_REL);
	}
}

static enum hrtimer_restart finish(struct hrtimer *timer)
{
	struct queued_command *command = container_of(timer, struct queued_command, timer);
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	--busy;
	fill_slots();
	spin_unlock_irqrestore(&lock, flags);
	complete(&command->done);
	return HRTIMER_NORESTART;
}

void sim_queue(enum sim_command command, u64 pages)
{
	struct queued_command own = { .ns = READ_ONCE(command_us) * 1000ULL + READ_ONCE(page_ns) * pages };

	if (!own.ns || passes_by(command))
		return;
	hrtimer_init_on_stack(&own.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	own.timer.function = finish;
	init_completion(&own.done);
	spin_lock_irq(&lock);
	list_add_tail(&own.waiting, &waiting);
	fill_slots();
	spin_unlock_irq(&lock);
	/* Signals do not interrupt it, as they do not in mlx5_core. */
	wait_for_completion(&own.done);
	hrtimer_cancel(&own.timer); /* until the interrupt has left this stack */
	destroy_hrtimer_on_stack(&own.timer);
}

void sim_queue_knobs(struct dentry *directory)
{
	struct dentry *queue = debugfs_create_dir("queue", directory);

	debugfs_create_u32("slots", 0600, queue, &slots);
	debugfs_create_u32("command_us", 0600, queue, &command_us);
	debugfs_create_u32("page_ns", 0600, queue, &page_ns);
}

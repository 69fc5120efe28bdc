// The contexts of this process: those that are open, by address, and those that are closed but whose
// objects the kernel still has.
#include <array>
#include <utility>

#include <unistd.h>

#include "provider/charging/context.hpp"

namespace rdmaquota::provider {
namespace {

// Contexts by address: chunks that are only ever added, read without a lock. A node opens a few.
struct Chunk {
    struct Entry {
        std::atomic<const ibv_context*> context{nullptr};
        std::atomic<Context*> record{nullptr};
    };
    std::array<Entry, 32> entries;
    std::atomic<Chunk*> next{nullptr};
};

Chunk first_chunk;
std::mutex table_mutex;  // held by who adds or removes, never by who finds

// Closed contexts whose file the kernel still has, and with it their objects; under table_mutex.
Context* closed_contexts = nullptr;

template <class Visit>
Chunk::Entry* find_entry(Visit visit) noexcept {
    for (Chunk* chunk = &first_chunk; chunk; chunk = chunk->next.load())
        for (auto& entry : chunk->entries)
            if (visit(entry)) return &entry;
    return nullptr;
}

void append_chunk() {
    auto* fresh = new Chunk;
    Chunk* last = &first_chunk;
    while (Chunk* next = last->next.load()) last = next;
    last->next.store(fresh);
}

bool is_free(const Chunk::Entry& entry) noexcept { return !entry.record.load(); }

template <class Act>
void for_each_record(Act act) noexcept {
    find_entry([&](const Chunk::Entry& entry) {
        if (!is_free(entry)) act(*entry.record.load());
        return false;
    });
}

}  // namespace

Context* Context::find(const ibv_context* context) noexcept {
    auto* entry =
        find_entry([&](const Chunk::Entry& e) { return e.context.load(std::memory_order_acquire) == context; });
    return entry ? entry->record.load() : nullptr;
}

void Context::add(const ibv_context* context, Context* record) {
    const std::lock_guard lock(table_mutex);
    Chunk::Entry* entry = nullptr;
    while (!(entry = find_entry(is_free))) append_chunk();
    entry->record.store(record);
    entry->context.store(context, std::memory_order_release);
}

Context* Context::remove(const ibv_context* context) noexcept {
    const std::lock_guard lock(table_mutex);
    auto* entry = find_entry([&](const Chunk::Entry& e) { return e.context.load() == context; });
    if (!entry) return nullptr;
    entry->context.store(nullptr);
    return entry->record.exchange(nullptr);
}

// Under the lock, since others may be closing theirs; that of the object is not being closed.
std::pair<Context*, std::unique_ptr<Receipt>> Context::take_receipt(const void* object) noexcept {
    const std::lock_guard lock(table_mutex);
    std::pair<Context*, std::unique_ptr<Receipt>> found;
    for_each_record([&](Context& record) {
        if (!found.second && (found.second = record.receipts_.take(object))) found.first = &record;
    });
    return found;
}

void Context::lock_all() noexcept {
    table_mutex.lock();
    for_each_record([](Context& record) {
        record.resizing_.lock();
        record.receipts_.lock().lock();
    });
}

void Context::unlock_all() noexcept {
    for_each_record([](Context& record) {
        record.receipts_.lock().unlock();
        record.resizing_.unlock();
    });
    table_mutex.unlock();
}

void Context::watch_file(int cmd_fd) noexcept {
    if (pid_ == getpid() && (handle_receipt || !receipts_.empty())) file_.begin(cmd_fd);
}

void Context::end(std::unique_ptr<Context> context) noexcept {
    if (!context->file_.is_open()) return;
    const std::lock_guard lock(table_mutex);
    context->next_closed_ = closed_contexts;
    closed_contexts = context.release();
}

bool Context::end_closed() noexcept {
    const int saved = errno;
    std::unique_lock lock(table_mutex);
    auto* context = std::exchange(closed_contexts, nullptr);
    lock.unlock();
    bool ended = false;
    while (context) {
        std::unique_ptr<Context> first(context);
        context = first->next_closed_;
        ended |= !first->file_.is_open();
        end(std::move(first));
    }
    errno = saved;
    return ended;
}

}  // namespace rdmaquota::provider

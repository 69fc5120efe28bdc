// The contexts of this process: those that are open, by address, and those that are closed but whose
// objects the kernel still has.
#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include <fmt/core.h>

#include "provider/charging/context.hpp"
#include "provider/host/disguised_address.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/log_target.hpp"

namespace rdmaquota::provider {
namespace {

// Contexts by address: chunks that are only ever added, read without a lock. A node opens a few.
struct Chunk {
    struct Entry {
        std::atomic<DisguisedAddress> context{nullptr};
        std::atomic<Context*> record{nullptr};
    };
    std::array<Entry, 32> entries;
    std::atomic<Chunk*> next{nullptr};
};

constinit Chunk first_chunk;
std::mutex table_mutex;  // for adding and removing; finding takes no lock

// Closed contexts whose file the kernel still has, and with it their objects; under table_mutex.
Context* closed_contexts = nullptr;

// Held while closed contexts are ended: a second thread that finds no room waits until what they held is uncharged.
std::mutex ending_mutex;

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

// Under table_mutex.
bool is_descriptor_of_context(int fd) noexcept {
    return find_entry([&](const Chunk::Entry& entry) {
        const auto* context = entry.context.load().shown<const ibv_context>();
        return context && context->cmd_fd == fd;
    });
}

// A directory, with a slash at its end, and in it the name of the device. Made without snprintf, which takes 1.6 KiB of
// stack.
struct DevicePath {
    char text[32 + sizeof(ibv_device::dev_name)];
    DevicePath(std::string_view directory, const ibv_context& verbs) noexcept {
        const auto rest = std::copy(directory.begin(), directory.end(), text);
        std::copy(std::begin(verbs.device->dev_name), std::end(verbs.device->dev_name), rest);
    }
};

// The inode of the device's directory in sysfs; 0 where there is none. A device that is registered again has another one.
ino_t sysfs_node(const ibv_context& verbs) noexcept {
    const DevicePath path("/sys/class/infiniband_verbs/", verbs);
    struct stat status {};
    return ::stat(path.text, &status) == 0 ? status.st_ino : 0;
}

void report_unwatched(const std::string& device, const char* path) noexcept {
    try {
        if (!says(LogLevel::info)) return;
        say(LogLevel::info,
            fmt::format("cannot tell when the kernel releases a closed context of {}: {} cannot be locked, perhaps because another "
                        "process locks all of it (see /proc/locks); it is uncharged once this process maps no queue of the device",
                        device, path));
    } catch (...) {  // no memory: without a word
    }
}

}  // namespace

Context* Context::find(const ibv_context* context) noexcept {
    auto* entry = find_entry([disguised = DisguisedAddress(context)](const Chunk::Entry& e) {
        return e.context.load(std::memory_order_acquire) == disguised;
    });
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
    auto* entry = find_entry(
        [disguised = DisguisedAddress(context)](const Chunk::Entry& e) { return e.context.load() == disguised; });
    if (!entry) return nullptr;
    entry->context.store(nullptr);
    return entry->record.exchange(nullptr);
}

// Under the lock, since others may be closing theirs; that of the object is not being closed.
std::pair<Context*, Receipt> Context::take_receipt(const void* object) noexcept {
    const std::lock_guard lock(table_mutex);
    std::pair<Context*, Receipt> found{};
    for_each_record([&](Context& record) {
        if (!found.second && (found.second = record.receipts().take(object))) found.first = &record;
    });
    return found;
}

// In the order in which end_closed takes them.
void Context::lock_all() noexcept {
    ending_mutex.lock();
    accounts_mutex().lock();
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
    accounts_mutex().unlock();
    ending_mutex.unlock();
}

void Context::watch_file(const ibv_context& verbs) noexcept {
    if (process_ != this_process() || (!handle_receipt && receipts_.empty())) return;
    const DevicePath path("/dev/infiniband/", verbs);
    if (!file_.begin(verbs.cmd_fd, path.text)) report_unwatched(device_.name(), path.text);
}

// A file that could not be marked is taken to be open while this process has a descriptor of the device that is no open context's,
// or maps the device's file without having another context of it. In doubt it is released: its program did close it.
bool Context::is_held_by_kernel() const noexcept {
    const KeepErrno keep;
    if (!file_.is_blind()) return file_.is_open();
    const std::lock_guard lock(table_mutex);
    if (file_.has_stray_descriptor(is_descriptor_of_context)) return true;
    bool other = false;
    for_each_record([&](const Context& record) { other = other || record.device_name() == device_name(); });
    return !other && file_.is_mapped();
}

void Context::note_device(const ibv_context& verbs) noexcept { device_node_ = sysfs_node(verbs); }

// sysfs shows at once that the device there is another one, or none. Whether the kernel has freed the objects, or waits until their
// file is closed, its answer says.
bool Context::is_removed(ibv_context& verbs) const noexcept {
    if (device_node_ == 0 || process_ != this_process() || sysfs_node(verbs) == device_node_) return false;
    const std::unique_ptr<ibv_device_attr_ex> attr(new (std::nothrow) ibv_device_attr_ex());
    return attr && report_.query(*attr) == EIO;
}

void Context::end(std::unique_ptr<Context> context) noexcept {
    if (context->is_held_by_kernel()) {
        const std::lock_guard lock(table_mutex);
        context->next_closed_ = closed_contexts;
        closed_contexts = context.release();
        return;
    }
    context.reset();
    ++ended;
}

void Context::end_closed() noexcept {
    const int saved = errno;
    const std::lock_guard alone(ending_mutex);
    std::unique_lock lock(table_mutex);
    find_entry([](const Chunk::Entry& entry) {
        auto* record = entry.record.load();
        auto* verbs = entry.context.load().shown<ibv_context>();
        if (record && verbs && record->is_removed(*verbs)) {
            record->uncharge_all();
            record->device_node_ = 0;
            ++ended;
        }
        return false;
    });
    auto* context = std::exchange(closed_contexts, nullptr);
    lock.unlock();
    while (context) {
        std::unique_ptr<Context> first(context);
        context = first->next_closed_;
        end(std::move(first));
    }
    errno = saved;
}

}  // namespace rdmaquota::provider

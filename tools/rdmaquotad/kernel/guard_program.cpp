#include "tools/rdmaquotad/kernel/guard_program.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/common/guard/bpf_map.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/rdmaquotad/kernel/ring_events.hpp"

namespace rdmaquota {
namespace {

// Where 32-bit programs have a hook of their own, its program is attached before, so that no way is open when the guard is said
// to be on.
struct Part {
    const char* function;
    const char* program;
    std::optional<Look> of;  // none: of both
    bool needed;
};
const Part guard_parts[] = {
    {"ib_uverbs_rereg_mr", "on_rereg_end", std::nullopt, false},
    {"ib_uverbs_ioctl", "on_ioctl_end", std::nullopt, false},
    {"ib_uverbs_write", "on_write_end", std::nullopt, false},
    {"bpf_lsm_file_ioctl_compat", "on_ioctl_compat", Look::security_hook, false},
    {"bpf_lsm_file_ioctl", "on_ioctl", Look::security_hook, true},
    {"security_file_ioctl_compat", "on_ioctl_compat_modified", Look::modified_return, false},
    {"security_file_ioctl", "on_ioctl_modified", Look::modified_return, true},
};
const char* const tables[] = {"stamps", "names"};

// Whether the kernel calls the look, while the guard is off: it attaches programs for BPF's security hooks also where it does not.
bool is_asked(const u32* asked) {
    const int file = eventfd(0, EFD_CLOEXEC);  // any file will do
    if (file < 0) return false;
    ioctl(file, RDMA_VERBS_IOCTL, nullptr);
    ::close(file);
    return __atomic_load_n(asked, __ATOMIC_RELAXED) != 0;
}

std::string words_of(int error) { return error == EPERM || error == EACCES ? "not permitted" : std::strerror(error); }

bpf_map* table(bpf_object* object, const char* name) { return bpf_object__find_map_by_name(object, name); }
bpf_program* program(bpf_object* object, const char* name) { return bpf_object__find_program_by_name(object, name); }

// 0, or the errno. The kernel lists a million files at a time, then wants to be asked again (MAX_ITER_OBJECTS in its bpf_iter.c).
int read_to_end(int fd) {
    char none[64];
    for (;;) {
        const auto got = read(fd, none, sizeof none);
        if (got == 0) return 0;
        if (got < 0 && errno != EAGAIN && errno != EINTR) return errno;
    }
}

// Runs the program that lists what was made before: reading an iterator runs it.
Result<void> list_files(int program) {
    const int link = bpf_link_create(program, 0, BPF_TRACE_ITER, nullptr);
    const int fd = link < 0 ? -1 : bpf_iter_create(link), error = errno;
    const int failed = fd < 0 ? error : read_to_end(fd);
    if (fd >= 0) close(fd);
    if (link >= 0) close(link);
    if (failed != 0) return Error{fmt::format("open files cannot be listed: {}", words_of(failed))};
    return {};
}

constexpr std::size_t most_events = 1024;  // at once: whoever is refused again and again must not keep the sidecar from all else

}  // namespace

struct GuardProgram::Parts {
    bpf_object* object;
    Words words;
    std::string version;
    RunPrograms run;
    const std::vector<ProgramLink>* links = nullptr;
    bool kept = false;  // by the kernel, before this process
    guard_row* rows = nullptr;
    guard_file* files = nullptr;
    u32* mode = nullptr;
    ring_buffer* ring = nullptr;
    std::vector<guard_event> events;
    std::vector<guard_unknown> unknown;

    Parts(bpf_object* of, const RunPrograms& runs, const std::string& its_version, const Words& its)
        : object(of), words(its), version(its_version), run(runs) {}
    Parts(const Parts&) = delete;
    ~Parts() {
        __atomic_store_n(words.seen_ns, 0, __ATOMIC_RELEASE);
        ring_buffer__free(ring);
        if (kept) run.close();
        if (mode) munmap(mode, sizeof *mode);
        if (rows) munmap(rows, guard_rows * sizeof *rows);
        if (files) munmap(files, opener_slots * sizeof *files);
    }

    template <typename Entry>
    bool map(const char* name, Entry*& into, std::size_t count) {
        void* memory = mmap(nullptr, count * sizeof(Entry), PROT_READ | PROT_WRITE, MAP_SHARED,
                            bpf_map__fd(table(object, name)), 0);
        if (memory != MAP_FAILED) into = static_cast<Entry*>(memory);
        return into != nullptr;
    }

    bool run_settle(settle_request request) const {
        bpf_test_run_opts options{};
        options.sz = sizeof options;
        options.ctx_in = &request;
        options.ctx_size_in = sizeof request;
        return bpf_prog_test_run_opts(run.settle, &options) == 0;
    }

    Result<void> open() {
        ring = ring_buffer__new(bpf_map__fd(table(object, "unknown")), append_event<guard_unknown, most_events>, &unknown, nullptr);
        if (!ring ||
            ring_buffer__add(ring, bpf_map__fd(table(object, "guard_events")), append_event<guard_event, most_events>, &events) != 0 ||
            !map("rows", rows, guard_rows) || !map("files", files, opener_slots) || !map(GuardPins::mode_map, mode, 1))
            return Error{fmt::format("the guard's tables cannot be mapped: {}", words_of(errno))};
        return {};
    }
};

void GuardProgram::select(bpf_object* object, std::optional<Look> look, const std::function<bool(const char*)>& has) {
    for (const auto& part : guard_parts)
        bpf_program__set_autoload(program(object, part.program), look && part.of.value_or(*look) == *look && has(part.function));
    for (const char* name : {"take_stock", "settle"}) bpf_program__set_autoload(program(object, name), look.has_value());
    if (look) return;
    for (const char* name : tables) bpf_map__set_max_entries(table(object, name), 1);
    bpf_map__set_value_size(table(object, "rows"), sizeof(guard_row));
    bpf_map__set_value_size(table(object, "files"), sizeof(guard_file));
}

Result<GuardProgram> GuardProgram::take_over(bpf_object* object, const RunPrograms& run, const std::string& version,
                                             const Words& words) {
    auto parts = std::make_unique<Parts>(object, run, version, words);
    parts->kept = true;
    if (auto opened = parts->open(); !opened) return Error{opened.error()};
    return GuardProgram(std::move(parts));
}

Result<GuardProgram> GuardProgram::attach(bpf_object* object, std::vector<ProgramLink>& links, const std::string& version,
                                          const Words& words) {
    const RunPrograms run{bpf_program__fd(program(object, "settle")), bpf_program__fd(program(object, "take_stock"))};
    auto parts = std::make_unique<Parts>(object, run, version, words);
    parts->links = &links;
    if (auto opened = parts->open(); !opened) return Error{opened.error()};
    bool looks_at_all = false;
    for (const auto& part : guard_parts) {
        auto* of = program(object, part.program);
        if (!bpf_program__autoload(of)) continue;
        auto* link = bpf_program__attach(of);
        if (!link) return Error{fmt::format("the guard cannot look at {}: {}", part.function, words_of(errno))};
        links.push_back({part.program, link});
        looks_at_all |= part.needed;
    }
    if (!looks_at_all) return Error{"this kernel has no security hook for ioctl"};
    if (!is_asked(words.asked)) return Error{"this kernel does not call BPF's security hooks (lsm= on its command line lacks bpf)"};
    for (int round = 0; round < 2; ++round)
        if (auto listed = list_files(run.take_stock); !listed) return Error{listed.error()};
    return GuardProgram(std::move(parts));
}

GuardProgram::GuardProgram(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
GuardProgram::GuardProgram(GuardProgram&&) noexcept = default;
GuardProgram& GuardProgram::operator=(GuardProgram&&) noexcept = default;
GuardProgram::~GuardProgram() = default;

bool GuardProgram::was_kept() const noexcept { return parts_->kept; }
u32& GuardProgram::mode() const noexcept { return *parts_->mode; }
int GuardProgram::names() const noexcept { return bpf_map__fd(table(parts_->object, "names")); }
const GuardProgram::Words& GuardProgram::words() const noexcept { return parts_->words; }
guard_row* GuardProgram::rows() const noexcept { return parts_->rows; }
guard_file* GuardProgram::files() const noexcept { return parts_->files; }
int GuardProgram::fd() const noexcept { return ring_buffer__epoll_fd(parts_->ring); }

std::vector<guard_event> GuardProgram::events() {
    ring_buffer__consume(parts_->ring);
    return std::exchange(parts_->events, {});
}

std::vector<guard_unknown> GuardProgram::unknown() { return std::exchange(parts_->unknown, {}); }

bool GuardProgram::settle(u64 file, const guard_stamp& stamp) { return parts_->run_settle({file, stamp}); }

bool GuardProgram::know(const guard_who& who, const guard_stamp& stamp) {
    return bpf::put_other(bpf_map__fd(table(parts_->object, "stamps")), &who, &stamp, sizeof stamp);
}

std::vector<guard_who> GuardProgram::known() const {
    auto* stamps = table(parts_->object, "stamps");
    std::vector<guard_who> all;
    guard_who who;
    for (const guard_who* last = nullptr; bpf_map__get_next_key(stamps, last, &who, sizeof who) == 0; last = &who)
        all.push_back(who);
    return all;
}

void GuardProgram::know_only(const std::set<std::string>& kept) {
    for (const auto& who : known())
        if (!kept.contains(bytes_of(who))) bpf_map__delete_elem(table(parts_->object, "stamps"), &who, sizeof who, 0);
}

Result<void> GuardProgram::keep() {
    if (parts_->kept) return {};
    return pin_program(parts_->object, *parts_->links, parts_->run, parts_->version);
}

Result<void> GuardProgram::list_again() {
    *parts_->words.lists_all = 1;
    return list_files(parts_->run.take_stock);
}

Result<void> GuardProgram::replace_others() const {
    for (const auto& directory : GuardPins::all())
        if (directory != GuardPins::of_version(parts_->version))
            if (auto removed = GuardPins::remove(directory); !removed) return removed;
    return {};
}

}  // namespace rdmaquota

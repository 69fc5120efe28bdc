#include "tools/rdmaquotad/kernel/program_pins.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <unistd.h>

#include "tools/common/text/directory_names.hpp"
#include "tools/common/guard/guard_pins.hpp"

namespace rdmaquota {
namespace {

constexpr const char* settle_name = "program_settle";
constexpr const char* stock_name = "program_take_stock";
constexpr std::string_view link_begin = "link_";

Error failed(const std::string& path, int error) { return {fmt::format("{}: {}", path, std::strerror(error))}; }

Result<void> pin(int fd, const std::string& path) {
    if (bpf_obj_pin(fd, path.c_str()) != 0) return failed(path, errno);
    return {};
}

Result<void> pin_map(bpf_map* map, const std::string& directory) {
    return pin(bpf_map__fd(map), fmt::format("{}/{}", directory, GuardPins::map(bpf_map__name(map))));
}

Result<void> reuse_map(bpf_map* map, const std::string& directory) {
    const auto path = fmt::format("{}/{}", directory, GuardPins::map(bpf_map__name(map)));
    const int fd = bpf_obj_get(path.c_str());
    if (fd < 0) return failed(path, errno);
    const int status = bpf_map__reuse_fd(map, fd);
    close(fd);
    if (status != 0) return failed(path, -status);
    return {};
}

Result<void> open_links(const std::string& directory, std::vector<ProgramLink>& links) {
    int error = 0;
    for (const auto& name : directory_names(directory, error)) {
        if (!name.starts_with(link_begin)) continue;
        const auto path = fmt::format("{}/{}", directory, name);
        auto* link = bpf_link__open(path.c_str());
        if (!link) return failed(path, errno);
        links.push_back({name.substr(link_begin.size()), link});
    }
    if (error != 0) return failed(directory, error);  // a part of the guard is not the guard
    if (links.empty()) return Error{directory + ": no program is kept there"};
    return {};
}

Result<void> pin_all(bpf_object* object, const std::vector<ProgramLink>& links, const RunPrograms& run, const std::string& directory) {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object) {
        if (auto pinned = pin_map(map, directory); !pinned) return pinned;
    }
    if (auto pinned = pin(run.settle, fmt::format("{}/{}", directory, settle_name)); !pinned) return pinned;
    if (auto pinned = pin(run.take_stock, fmt::format("{}/{}", directory, stock_name)); !pinned) return pinned;
    for (const auto& [program, link] : links)
        if (auto pinned = pin(bpf_link__fd(link), fmt::format("{}/{}", directory, GuardPins::link(program))); !pinned)
            return pinned;
    return {};
}

}  // namespace

void RunPrograms::close() {
    for (int* program : {&settle, &take_stock})
        if (const int fd = std::exchange(*program, -1); fd >= 0) ::close(fd);
}

std::string program_version(const void* object, std::size_t bytes) {
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(object)[i]) * 1099511628211ULL;
    return fmt::format("{:016x}", hash);
}

// The mode comes before the links, so that whoever finds a link can turn it off.
Result<void> pin_program(bpf_object* object, const std::vector<ProgramLink>& links, const RunPrograms& run,
                         const std::string& version) {
    const auto directory = GuardPins::fresh();
    if (!directory) return Error{directory.error()};
    auto done = pin_all(object, links, run, *directory);
    if (done) done = GuardPins::publish(version);
    if (!done) GuardPins::discard_fresh();  // else a part of it would refuse, and kill, once this process has ended
    return done;
}

Result<PinnedProgram> take_pinned(bpf_object* object, const std::string& version) {
    const auto directory = GuardPins::of_version(version);
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object) {
        if (auto reused = reuse_map(map, directory); !reused) return Error{reused.error()};
    }
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object) bpf_program__set_autoload(program, false);
    PinnedProgram pinned;
    pinned.run.settle = bpf_obj_get(fmt::format("{}/{}", directory, settle_name).c_str());
    pinned.run.take_stock = bpf_obj_get(fmt::format("{}/{}", directory, stock_name).c_str());
    auto opened = pinned.run.settle < 0 || pinned.run.take_stock < 0 ? Result<void>(failed(directory, errno))
                                                                     : open_links(directory, pinned.links);
    if (opened) return pinned;
    for (const auto& [name, link] : pinned.links) bpf_link__destroy(link);
    pinned.run.close();
    return Error{opened.error()};
}

}  // namespace rdmaquota

#include "tools/rdmaquotad/kernel/backstop.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <sstream>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "policy/write_all.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

std::uint64_t parse_count(const std::string& text) {
    return text == "max" ? unlimited : std::strtoull(text.c_str(), nullptr, 10);
}

std::string count_text(std::uint64_t count) { return count == unlimited ? "max" : std::to_string(count); }

std::string words(const HcaCounts& counts) { return count_text(counts.handle) + " " + count_text(counts.object); }

bool read_words(std::istream& words, HcaCounts& counts) {
    std::string handle, object;
    if (!(words >> handle >> object)) return false;
    counts = {parse_count(handle), parse_count(object)};
    return true;
}

// The kernel takes a text of less than a page for a file of a cgroup in one write.
Result<void> write_whole(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && write_all(fd, text);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (written) return {};
    return Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
}

}  // namespace

std::map<std::string, HcaCounts> parse_hca_counts(const std::string& text, const std::string& key) {
    std::map<std::string, HcaCounts> found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string device, word;
        if (!(words >> device)) continue;
        auto& counts = found[device];
        while (words >> word) {
            const auto equals = word.find('=');
            if (equals == word.npos) continue;
            const auto name = word.substr(0, equals);
            if (name == "hca_handle" + key) counts.handle = parse_count(word.substr(equals + 1));
            if (name == "hca_object" + key) counts.object = parse_count(word.substr(equals + 1));
        }
    }
    return found;
}

Backstop::Backstop(std::string directory, std::string root) : path_(directory + "/backstop"), root_(std::move(root)) {}

// A device that is missing from the file is unbounded and uses nothing.
Result<HcaCounts> Backstop::read(const std::string& group, const char* name, const std::string& device,
                                 const char* key) const {
    const auto path = root_ + group + "/" + name;
    if (access(path.c_str(), R_OK) != 0)
        return Error{fmt::format("there is no {}: {}", path,
                                 group == "/" ? "the root cgroup cannot be bounded"
                                              : "enable the rdma controller in cgroup.subtree_control above it")};
    const auto counts = parse_hca_counts(file_text(path), key);
    const auto entry = counts.find(device);
    if (entry != counts.end()) return entry->second;
    return std::strcmp(name, "rdma.max") == 0 ? HcaCounts{} : HcaCounts{0, 0};
}

Result<HcaCounts> Backstop::current(const std::string& group, const std::string& device) const {
    return read(group, "rdma.current", device);
}

Result<HcaCounts> Backstop::denied(const std::string& group, const std::string& device) const {
    return read(group, "rdma.events", device, ".max");
}

Result<void> Backstop::write(const CgroupDevice& place, const HcaCounts& bound) const {
    return write_whole(root_ + place.first + "/rdma.max",
                       fmt::format("{} hca_handle={} hca_object={}", place.second, count_text(bound.handle),
                                   count_text(bound.object)));
}

Result<void> Backstop::set(const std::string& group, const std::string& device, const HcaCounts& bound) {
    const CgroupDevice place{group, device};
    const auto now = read(group, "rdma.max", device);
    if (!now) return Error{now.error()};
    const auto known = changes_.find(place);
    // A value that somebody else wrote since becomes the one to restore, and an upper bound for ours.
    const bool ours = known != changes_.end() && known->second.made(*now);
    const auto found = ours ? known->second.found : *now;
    const HcaCounts wanted{std::min(bound.handle, found.handle), std::min(bound.object, found.object)};
    if (ours && known->second.set == wanted && *now == wanted) return {};
    changes_[place] = {found, wanted, *now};
    if (auto recorded = record(); !recorded) return recorded;
    return write(place, wanted);
}

void Backstop::put_back(const std::string& group, const std::string& device) {
    const auto change = changes_.find({group, device});
    if (change == changes_.end()) return;
    const auto now = read(group, "rdma.max", device);
    if (now && change->second.made(*now)) (void)write(change->first, change->second.found);
    changes_.erase(change);
    (void)record();
}

void Backstop::put_back_all() {
    for (const auto& [group, device] : all()) put_back(group, device);
}

bool Backstop::bounds(const std::string& group, const std::string& device) const {
    return changes_.contains({group, device});
}

std::vector<std::pair<std::string, std::string>> Backstop::all() const {
    std::vector<CgroupDevice> places;
    for (const auto& [place, change] : changes_) places.push_back(place);
    return places;
}

// Each line: the device; the values found, set, and set before; the group, which may contain blanks.
Result<void> Backstop::record() const {
    if (changes_.empty()) {
        unlink(path_.c_str());
        return {};
    }
    std::string text;
    for (const auto& [place, change] : changes_)
        text += fmt::format("{} {} {} {} {}\n", place.second, words(change.found), words(change.set),
                            words(change.before), place.first);
    return replace_file(path_, text, 0600);
}

Result<void> Backstop::load() {
    std::istringstream lines(file_text(path_));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string device, group;
        Change change;
        if (!(words >> device) || !read_words(words, change.found) || !read_words(words, change.set) ||
            !read_words(words, change.before) || !std::getline(words >> std::ws, group))
            return set_aside();
        changes_[{group, device}] = change;
    }
    return {};
}

// Keeps an unusable record for the administrator. The lines before the unusable one stay in force.
Error Backstop::set_aside() const {
    const auto aside = fmt::format("{}.unusable.{}", path_, std::time(nullptr));
    if (std::rename(path_.c_str(), aside.c_str()) != 0)
        return {fmt::format("{} cannot be understood, nor be moved aside: {}", path_, std::strerror(errno))};
    const auto recorded = record();
    return {fmt::format("{} cannot be understood and is now {}; put rdma.max right by it and remove it{}", path_, aside,
                        recorded ? "" : "; " + recorded.error())};
}

std::string cgroup_of(std::uint32_t pid) {
    std::istringstream lines(file_text(fmt::format("/proc/{}/cgroup", pid)));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("0::")) return line.substr(3);
    return {};
}

}  // namespace rdmaquota

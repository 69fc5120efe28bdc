#include "tools/rdmaquotad/serve/event_keeper.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <systemd/sd-journal.h>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "policy/write_all.hpp"
#include "tools/common/events/event_journal.hpp"
#include "tools/common/events/event_text.hpp"

namespace rdmaquota {
namespace {

constexpr off_t most_bytes = 4 << 20;

std::string field(const Json& event, const char* member) {
    const auto found = event.find(member);
    if (found == event.end() || found->is_null()) return {};
    return found->is_string() ? found->get<std::string>() : found->dump();
}

Result<void> append(const std::string& path, const std::string& line) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && status.st_size > most_bytes)
        ::rename(path.c_str(), (path + ".1").c_str());
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    const bool done = fd >= 0 && write_all(fd, line);
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return done ? Result<void>() : Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
}

}  // namespace

EventKeeper::EventKeeper(std::string directory)
    : directory_(std::move(directory)), journald_(journald_keeps_events(directory_)) {}

bool EventKeeper::keep(Priority priority, const Json& event) {
    if (journald_ && to_journald(priority, event)) return true;
    to_file(event);
    return false;
}

// Each field "NAME=value" of its own, so that nothing in a value can make another one.
bool EventKeeper::to_journald(Priority priority, const Json& event) const {
    const auto message = event.contains("source") ? fmt::format("{}: {}", field(event, "kind"), field(event, "text"))
                                                  : event_line(event).substr(24);
    std::vector<std::string> fields{fmt::format("MESSAGE={}", printable(message)),
                                    fmt::format("PRIORITY={}", static_cast<int>(priority)),
                                    "SYSLOG_IDENTIFIER=rdmaquotad", fmt::format("MESSAGE_ID={}", event_message_id),
                                    "RDMAQUOTA_EVENT=" + dump(event)};
    for (const auto& [name, member] : {std::pair{"KIND", "kind"},
                                       {"TENANT", "tenant"},
                                       {"DEVICE", "device"},
                                       {"RESOURCE", "resource"},
                                       {"PID", "pid"},
                                       {"USER_ID", "uid"},
                                       {"COUNT", "count"}})
        if (auto value = field(event, member); !value.empty())
            fields.push_back(fmt::format("RDMAQUOTA_{}={}", name, value));
    std::vector<iovec> parts;
    for (auto& text : fields) parts.push_back({text.data(), text.size()});
    return ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

void EventKeeper::to_file(const Json& event) {
    const auto done = append(event_file(directory_), dump(event) + "\n");
    const auto error = done ? std::string() : done.error();
    if (std::exchange(said_, error) != error && !error.empty()) log(Priority::warning, error);
}

}  // namespace rdmaquota

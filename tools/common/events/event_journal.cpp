#include "tools/common/events/event_journal.hpp"

#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t most_events = 100'000;

void add(const std::string& text, const std::string& since, std::vector<Json>& events) {
    auto event = Json::parse(text, nullptr, false);
    if (event.is_object() && event.value("time", "") >= since && events.size() < most_events)
        events.push_back(std::move(event));
}

void read_file(const std::string& path, const std::string& since, std::vector<Json>& events) {
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) add(line, since, events);
}

std::int64_t seconds_of(const std::string& time) {
    std::tm parts{};
    return ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr ? 0 : ::timegm(&parts);
}

// By its own tool, so that the CLI needs no library of systemd's. Only what root wrote counts.
void read_journald(const std::string& since, std::vector<Json>& events) {
    const auto command = fmt::format(
        "journalctl --quiet --no-pager --output=json --output-fields=RDMAQUOTA_EVENT --since=@{} "
        "MESSAGE_ID={} _UID=0 2>/dev/null",
        seconds_of(since), event_message_id);
    const std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "re"), ::pclose);
    char* line = nullptr;
    std::size_t room = 0;
    while (output && ::getline(&line, &room, output.get()) > 0) {
        const auto entry = Json::parse(line, nullptr, false);
        if (entry.is_object()) add(entry.value("RDMAQUOTA_EVENT", ""), since, events);
    }
    std::free(line);
}

}  // namespace

bool journald_keeps_events(const std::string& directory) {
    return directory == system_directory && ::access("/run/systemd/journal/socket", F_OK) == 0;
}

std::string event_file(const std::string& directory) {
    return (directory == system_directory ? std::string("/var/log/rdmaquota") : directory) + "/events.json";
}

std::vector<Json> read_event_journal(const std::string& directory, const std::string& since) {
    std::vector<Json> events;
    if (journald_keeps_events(directory)) read_journald(since, events);
    for (const char* suffix : {".1", ""}) read_file(event_file(directory) + suffix, since, events);
    return events;
}

}  // namespace rdmaquota

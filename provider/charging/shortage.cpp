#include "provider/charging/shortage.hpp"

#include <cerrno>
#include <cstring>
#include <functional>

#include <fmt/core.h>

#include "provider/charging/repeats.hpp"
#include "provider/host/bounds.hpp"
#include "provider/host/log_target.hpp"

namespace rdmaquota::provider {
namespace {

// Bytes where the kind has any: what is pinned runs out more often than what is counted.
KindPart main_part(Kind kind) noexcept {
    const auto parts = parts_of(kind);
    for (std::size_t i = 0; i < parts.count; ++i)
        if (info(parts.part[i].resource).unit == Unit::bytes) return parts.part[i];
    return parts.part[0];
}

Event event_of(Account& account, std::uint32_t device_index, const Shortage& shortage, const Identity& who) {
    const auto part = main_part(shortage.kind);
    Event event{};
    event.kind = EventKind::refused_by_device;
    event.device = device_index;
    event.resource = static_cast<std::uint32_t>(index(part.resource));
    event.pid = who.pid;
    event.pid_namespace = who.pid_namespace;
    event.uid = who.uid;
    event.error = static_cast<std::uint32_t>(shortage.error);
    event.used = account.ledger().gate(device_index, part.resource);
    event.limit = unlimited;
    event.requested = part.of(shortage.size);
    who.comm.copy(event.comm, sizeof event.comm - 1);
    if (shortage.error == ENOMEM) event.bounds = bounds_of_self();
    return event;
}

}  // namespace

bool is_shortage(int error) noexcept {
    return error == ENOMEM || error == EAGAIN || error == ENOSPC || error == EMFILE || error == ENFILE;
}

void report_shortage(Account& account, std::uint32_t device_index, std::string_view device,
                     const Shortage& shortage) noexcept {
    try {
        const auto who = identity_of_self();
        const auto event = event_of(account, device_index, shortage, who);
        const auto recorded = record_or_repeat(account.ledger(), std::hash<std::string>()(account.here()), event);
        if (!recorded.say || !says(LogLevel::info)) return;
        const char* error = strerrorname_np(shortage.error);
        say(LogLevel::info,
            fmt::format(
                "{} on {} refused ({}) by the device or its driver, although the limits have room: tenant {} uses {}; "
                "rdmaquota explain names possible causes",
                info(main_part(shortage.kind).resource).name, device, error == nullptr ? "?" : error, account.tenant(),
                format_amount(main_part(shortage.kind).resource, event.used)));
    } catch (...) {  // no memory: without a word
    }
}

}  // namespace rdmaquota::provider

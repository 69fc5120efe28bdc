#include "tools/rdmaquotad/metrics/metrics_listener.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "tools/common/limits/metrics_files.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t shortest_token = 16;

Result<void> read_token(const std::string& path, std::string& into) {
    into = file_text(path);
    into.resize(into.find_last_not_of(" \t\r\n") + 1);
    const bool graphic = std::all_of(into.begin(), into.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
    if (into.size() >= shortest_token && graphic) return {};
    return Error{fmt::format("metrics_token: {0} has no token of at least {1} characters in one line; run: openssl rand -hex 32 > {0}", path,
                             shortest_token)};
}

}  // namespace

Result<Listener> metrics_listener(const Sidecar& sidecar) {
    const auto& metrics = sidecar.metrics;
    Listener listener;
    listener.kept = metrics.address == listener.address;  // nobody else gets the port meanwhile
    listener.address = metrics.address;
    listener.port = static_cast<std::uint16_t>(sidecar.metrics_port);
    if (listener.port == 0) return listener;
    if (const auto usable = check_metrics_files(metrics); !usable) return Error{usable.error()};
    if (!metrics.has_tls()) return listener;
    listener.tls.certificate = file_text(metrics.certificate);
    listener.tls.key = file_text(metrics.key);
    if (!metrics.client_ca.empty()) listener.tls.client_ca = file_text(metrics.client_ca);
    if (const auto usable = check_tls(listener.tls); !usable) return Error{usable.error()};
    if (!metrics.token.empty())
        if (const auto read = read_token(metrics.token, listener.token); !read) return Error{read.error()};
    return listener;
}

}  // namespace rdmaquota

// rdmaquota web: the address of the sidecar's web page, with the token that opens it.
#include <unistd.h>

#include <memory>

#include <fmt/core.h>

#include "tools/common/control_client.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

int print_address(const Session& session, bool renewed) {
    const auto answer = ask_sidecar(session.directory, Json{{"request", "web"}, {"renewed", renewed}});
    if (!answer) return failed(answer.error());
    const auto web = answer->value("web", Json::object());
    const auto token = web.value("token", Json());
    fmt::print("http://127.0.0.1:{}/{}\n", web.value("port", 0),
               token.is_string() ? "?token=" + token.get<std::string>() : std::string());
    return status_done;
}

}  // namespace

void add_web(CommandLine& line, const Session& session) {
    auto command = line.command("web", "Print the address of the sidecar's web page");
    const auto renewed = std::make_shared<bool>();
    command.flag("--renew", *renewed, "End the token so far, as root those of all users, and print the address with a new one");
    command.action([renewed, &session] { return print_address(session, *renewed); });
}

}  // namespace rdmaquota

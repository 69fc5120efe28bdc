// rdmaquota cdi: what a container runtime needs to put a container into a tenant, as a CDI specification.
#include <memory>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/tenants/container_specification.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string tenant, output;
};

int cdi(const Options& options, const Session& session) {
    const auto written = container_specification(options.tenant, session.directory);
    if (!written) return failed(written.error());
    const auto text = written->dump(2) + "\n";
    if (options.output.empty()) return fmt::print("{}", text), status_done;
    const auto replaced = replace_file(options.output, text);
    return replaced ? status_done : failed(replaced.error());
}

}  // namespace

void add_cdi(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("cdi", "Write the CDI specification by which containers are in a tenant");
    command.word("TENANT", options->tenant, "Tenant of the policy, or one that was added");
    command.option("--output", "FILE", options->output, "Write there, for example to /etc/cdi, instead of standard output");
    command.action([options, &session] { return cdi(*options, session); });
}

}  // namespace rdmaquota

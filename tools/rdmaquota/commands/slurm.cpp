// rdmaquota slurm: makes and removes the tenants of Slurm jobs, for Slurm's plugin (tools/slurm/); shows what limits a
// job would have.
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "policy/slurm.hpp"
#include "shm/paths.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/slurm_jobs.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::vector<std::string> words;  // begin ID, end ID, limits
    std::string user, account, partition, qos, rdma;
};

std::optional<std::uint32_t> job_number(const std::string& text) {
    std::uint32_t number = 0;
    const auto* end = text.data() + text.size();
    const auto [stop, status] = std::from_chars(text.data(), end, number);
    return status == std::errc{} && stop == end && number != 0 ? std::optional(number) : std::nullopt;
}

// Account and QOS of a job as Slurm has them, "atlas|high"; empty when it does not answer.
std::string ask_slurm(std::uint32_t job) {
    const auto command = fmt::format("timeout 5 squeue --noheader --jobs={} --format='%a|%q' 2> /dev/null", job);
    auto* pipe = ::popen(command.c_str(), "re");
    if (pipe == nullptr) return "";
    std::array<char, 512> line{};
    std::string answer = std::fgets(line.data(), line.size(), pipe) == nullptr ? "" : line.data();
    (void)::pclose(pipe);
    while (!answer.empty() && answer.back() == '\n') answer.pop_back();
    return answer;
}

// Older versions of Slurm do not give prologs the QOS, and some not the account.
bool lacks_something(const SlurmPolicy& policy, const SlurmJob& job) {
    return job.account.empty() || (job.qos.empty() && !policy.qos.empty());
}

// False when Slurm does not answer.
bool complete(const SlurmPolicy& policy, SlurmJob& job) {
    if (!lacks_something(policy, job)) return true;
    const auto answer = ask_slurm(job.id);
    const auto bar = answer.find('|');
    if (bar == answer.npos) return false;
    const auto known = [](const std::string& word) { return word == "(null)" || word == "N/A" ? std::string() : word; };
    if (job.account.empty()) job.account = known(answer.substr(0, bar));
    if (job.qos.empty()) job.qos = known(answer.substr(bar + 1));
    return true;
}

// What is to be told to the job's user, and to the administrator.
void remark(const SlurmJob& job, const Session& session, const std::string& text) {
    warn(text);
    record_job_event(session.directory, job, text);
}

void lower(const std::string& text, ScopeLimits& limits, const SlurmJob& job, const Session& session) {
    const auto request = parse_job_request(text);
    if (!request) return remark(job, session, fmt::format("--rdma has no effect: {}", request.error()));
    for (const auto& what : apply_job_request(*request, limits)) remark(job, session, "--rdma: " + what);
}

int not_begun(const SlurmJob& job, const Session& session, const std::string& why) {
    const auto text = fmt::format("job {} has no RDMA quota of its own: {}", job.id, why);
    record_job_event(session.directory, job, text);
    return failed(text);
}

int begin(SlurmJob job, const Options& options, const Session& session) {
    const auto user = user_id(options.user);
    if (!user) return wrong_usage("--user is needed: the name or number of the job's user");
    job.uid = *user;
    const auto policy = running_slurm(session.directory);
    if (!policy) return not_begun(job, session, policy.error());
    if (!policy.value()) {
        if (!options.rdma.empty()) warn("--rdma has no effect: the policy of this node has no [slurm]");
        return status_done;
    }
    if (!complete(**policy, job))
        remark(job, session, "Slurm does not tell account and QOS; their limits are not used");
    const auto allowed = limits_of(**policy, job);
    auto limits = allowed;
    if (!options.rdma.empty()) lower(options.rdma, limits, job, session);
    auto begun = begin_job(session.directory, job, std::move(limits));
    if (!begun && !options.rdma.empty()) {  // what a job asks for must not make it lose its tenant
        remark(job, session, fmt::format("--rdma has no effect: {}", begun.error()));
        begun = begin_job(session.directory, job, allowed);
    }
    if (!begun) return not_begun(job, session, begun.error());
    fmt::print("tenant {}\n", tenant_of(job));
    return status_done;
}

int end(const SlurmJob& job, const Session& session) {
    const auto ended = end_job(session.directory, job.id);
    if (ended) return status_done;
    const auto text = fmt::format("the tenant of job {} is not removed: {}", job.id, ended.error());
    record_job_event(session.directory, job, text);
    return failed(text);
}

int limits(const SlurmJob& job, const Options& options, const Session& session) {
    const auto policy = running_slurm(session.directory);
    if (!policy) return failed(policy.error());
    if (!policy.value()) return failed("the policy in force has no [slurm]: jobs get no tenant");
    auto limits = limits_of(**policy, job);
    if (!options.rdma.empty()) {
        const auto request = parse_job_request(options.rdma);
        if (!request) return wrong_usage(request.error());
        for (const auto& what : apply_job_request(*request, limits)) warn(what);
    }
    Table table({"DEVICE", "RESOURCE", "LIMIT"}, {Align::left, Align::left, Align::right});
    for (const auto& [device, row] : limits)
        for (std::size_t i = 0; i < row.size(); ++i)
            if (const auto resource = static_cast<Resource>(i); row[i] != unset)
                table.add({device, std::string(info(resource).name), format_amount(resource, row[i])});
    table.print(standard_output());
    return status_done;
}

int slurm(const Options& options, const Session& session) {
    const auto& words = options.words;
    SlurmJob job{0, 0, options.account, options.partition, options.qos};
    if (words[0] == "limits" && words.size() == 1) return limits(job, options, session);
    const auto number = words.size() == 2 ? job_number(words[1]) : std::nullopt;
    if (!number || (words[0] != "begin" && words[0] != "end"))
        return wrong_usage(
            "write 'slurm begin JOB --user USER', 'slurm end JOB' or 'slurm limits', with the number of a job");
    job.id = *number;
    return words[0] == "begin" ? begin(std::move(job), options, session) : end(job, session);
}

}  // namespace

void add_slurm(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command =
        line.command("slurm", "Make and remove the tenant of a Slurm job, or show the limits that one would have");
    command.words("begin|end|limits [JOB]", options->words, "What to do; the number of the job");
    command.option("--user", "USER", options->user, "begin: the user of the job");
    command.option("--account", "ACCOUNT", options->account, "begin, limits: the account of the job");
    command.option("--partition", "PARTITION", options->partition, "begin, limits: its partition");
    command.option("--qos", "QOS", options->qos, "begin, limits: its QOS");
    command.option("--rdma", "RESOURCE=N,...", options->rdma,
                   "begin, limits: what its user asks for, within the policy");
    command.action([options, &session] { return slurm(*options, session); });
}

}  // namespace rdmaquota

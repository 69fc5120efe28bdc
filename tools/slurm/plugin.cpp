// Slurm's plugin (SPANK): gives each job a tenant of its own before its first process, and takes it away after its last
// one. The work is done by `rdmaquota slurm`, a program that can fail or hang without harm to Slurm: every call here
// returns success, since a node whose prolog or epilog fails is drained.
//
//   srun, sbatch, salloc   the option --rdma: is it right? A step inside an allocation cannot have it
//   prolog, epilog         rdmaquota slurm begin, end; by slurmd as root, on each node of the job
//   slurmstepd             tells the job's log what there was to say, and refuses a step with another --rdma than the
//   job's
//
// DIR/slurm/job-ID is there from prolog to epilog, for slurmstepd: "rdma TEXT" where the job has that option, then what
// `rdmaquota slurm begin` printed.
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <slurm/slurm.h>

// It declares what a plugin has to define, without saying that these are C.
#pragma GCC visibility push(default)
extern "C" {
#include <slurm/spank.h>
}
#pragma GCC visibility pop

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "policy/slurm.hpp"
#include "tools/slurm/bounded.hpp"
#include "tools/slurm/slurm_conf.hpp"

namespace rdmaquota {
namespace {

// That a prolog or an epilog may take; or what plugstack.conf says after the path: timeout=N.
constexpr int longest_s = 120;
constexpr int spare_s = 5;  // that it ends before Slurm would end it
constexpr int longest_end_s = 3;  // of these, to take away what a prolog that took too long may have left
constexpr std::size_t longest_request = 1024;
constexpr off_t most_event_bytes = 512 * 1024;  // the command begins another file before that
constexpr const char* program = RDMAQUOTA_PROGRAM;
constexpr const char* notes = RDMAQUOTA_RUNTIME_DIR "/slurm";

// --- the option ------------------------------------------------------------------------------------

int refuse(const std::string& why) {
    slurm_error("rdmaquota: %s", why.c_str());
    return -1;
}

// Slurm hands the option of sbatch and salloc down to each srun in the job. Who sets this variable himself gets no
// further than slurmstepd.
bool is_the_jobs(const std::string& value) {
    const char* handed_down = std::getenv("SLURM_SPANK__SLURM_SPANK_OPTION_rdmaquota_rdma");
    return handed_down != nullptr && value == handed_down;
}

int check_option(const char* value) {
    const std::string text = value == nullptr ? "" : value;
    const char* job = std::getenv("SLURM_JOB_ID");
    if (spank_context() == S_CTX_LOCAL && job != nullptr && !is_the_jobs(text))
        return refuse(
            fmt::format("--rdma belongs to a whole job: this is a step of job {}, whose quota stands; leave "
                        "--rdma out here, and give it to sbatch or salloc",
                        printable(job)));
    if (text.size() > longest_request) return refuse("--rdma is too long");
    if (const auto request = parse_job_request(text); !request) return refuse("--rdma: " + request.error());
    return ESPANK_SUCCESS;
}

// In slurmstepd the option is only compared.
int take_option(int, const char* value, int remote) noexcept {
    try {
        return remote != 0 ? ESPANK_SUCCESS : check_option(value);
    } catch (...) {
        return -1;
    }
}

char option_name[] = "rdma";
char option_value[] = "RESOURCE=N[,...]";
char option_usage[] =
    "at most so much RDMA for this job, on each of its nodes, such as qp=100,mr_bytes=10GiB; within what the node's "
    "policy gives";
spank_option option{option_name, option_value, option_usage, 1, 0, take_option};

std::string given_option(spank_t spank) {
    char* value = nullptr;
    const bool given = spank_option_getopt(spank, &option, &value) == ESPANK_SUCCESS && value != nullptr;
    return given ? std::string(value).substr(0, longest_request) : std::string();
}

// --- prolog and epilog -----------------------------------------------------------------------------

std::string note_path(std::uint32_t job) { return fmt::format("{}/job-{}", notes, job); }

// Where nothing is in force there is no place for it.
void write_note(std::uint32_t job, const std::string& text) {
    const auto path = note_path(job);
    ::unlink(path.c_str());
    if (text.empty()) return;
    ::mkdir(notes, 0755);
    std::ofstream(path) << text;
}

// Best effort: an event as `rdmaquota slurm begin` writes it (tools/common/tenants/slurm_jobs.cpp), where that could not.
void record(std::uint32_t job, const std::string& text) {
    std::timespec now{};
    std::tm parts{};
    char second[32] = "";
    (void)std::timespec_get(&now, TIME_UTC);
    if (::gmtime_r(&now.tv_sec, &parts) != nullptr) (void)std::strftime(second, sizeof second, "%FT%T", &parts);
    SlurmJob its;
    its.id = job;
    if (const char* account = std::getenv("SLURM_JOB_ACCOUNT"); account != nullptr) its.account = account;
    ::mkdir(notes, 0755);
    const auto path = fmt::format("{}/events", notes);
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && status.st_size > most_event_bytes) return;
    std::ofstream(path, std::ios::app)
        << fmt::format(R"({{"source":"slurm","time":"{}.{:09}Z","kind":"job","tenant":{},"text":{}}})", second, now.tv_nsec,
                       in_quotes(printable(tenant_of(its))), in_quotes(printable(text)))
        << '\n';
}

// Slurm's own programs are beside slurmstepd, in ../bin.
std::string search_path() {
    std::string self(4096, '\0');
    const auto length = ::readlink("/proc/self/exe", self.data(), self.size());
    self.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    const auto slash = self.rfind('/');
    const auto beside = slash == self.npos ? std::string() : self.substr(0, slash) + "/../bin:";
    return beside + "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
}

int timeout_of(Stage stage, int count, char** words) {
    int timeout = longest_s;
    for (int i = 0; i < count; ++i)
        if (const std::string_view word(words[i]); word.starts_with("timeout="))
            if (const int seconds = std::atoi(words[i] + 8); seconds > 0) timeout = seconds;
    const char* conf = std::getenv("SLURM_CONF");
    const int most = slurms_timeout(conf == nullptr ? "/etc/slurm/slurm.conf" : conf, stage);
    return most > 0 ? std::min(timeout, std::max(most - spare_s, 1)) : timeout;
}

Ended run_program(std::vector<std::string> arguments, int timeout_s) {
    arguments.insert(arguments.begin(), {program, "slurm"});
    return run_bounded(arguments, search_path(), timeout_s);
}

void add(std::vector<std::string>& arguments, const char* option, const char* value) {
    if (value != nullptr && *value != '\0') arguments.push_back(fmt::format("{}={}", option, value));
}

template <class Id>
bool get(spank_t spank, spank_item item, Id& id) {
    return spank_get_item(spank, item, &id) == ESPANK_SUCCESS;
}

void begin(spank_t spank, int timeout_s) {
    std::uint32_t job = 0;
    uid_t user = 0;
    if (!get(spank, S_JOB_ID, job) || !get(spank, S_JOB_UID, user)) return;
    const auto rdma = given_option(spank);
    std::vector<std::string> arguments{"begin", std::to_string(job), fmt::format("--user={}", user)};
    add(arguments, "--account", std::getenv("SLURM_JOB_ACCOUNT"));
    add(arguments, "--partition", std::getenv("SLURM_JOB_PARTITION"));
    add(arguments, "--qos", std::getenv("SLURM_JOB_QOS"));
    add(arguments, "--rdma", rdma.c_str());
    auto ended = run_program(std::move(arguments), timeout_s);
    while (!ended.output.empty() && ended.output.back() == '\n') ended.output.pop_back();
    if (ended.status < 0) {
        // It may have been killed between making the tenant and giving it its share.
        (void)run_program({"end", std::to_string(job)}, std::min(timeout_s, longest_end_s));
        const auto text = fmt::format("job {} has no RDMA quota of its own: {}", job, ended.output);
        ended.output = "rdmaquota: " + text + "\n";
        record(job, text);
    }
    if (ended.status != 0) slurm_error("%s", ended.output.c_str());
    write_note(job, (rdma.empty() ? "" : "rdma " + printable(rdma) + "\n") + ended.output);
}

void end(spank_t spank, int timeout_s) {
    std::uint32_t job = 0;
    if (!get(spank, S_JOB_ID, job)) return;
    const auto ended = run_program({"end", std::to_string(job)}, timeout_s);
    if (ended.status != 0) slurm_error("rdmaquota: job %u: %s", job, ended.output.c_str());
    write_note(job, "");
}

// --- slurmstepd ------------------------------------------------------------------------------------

struct Note {
    bool exists = false;
    std::string rdma;
    std::vector<std::string> remarks;
};

Note read_note(std::uint32_t job) {
    Note note;
    std::ifstream file(note_path(job));
    note.exists = file.is_open();
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("rdma ")) note.rdma = line.substr(5);
        if (line.starts_with("rdmaquota: ")) note.remarks.push_back(line);
    }
    return note;
}

bool is_first_step(std::uint32_t step) {
    return step == 0 || step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP;
}

// The step's own option, where it is not the job's. Without a note it is not known what the job's was.
bool has_other_option(spank_t spank, const Note& note) {
    const auto own = given_option(spank);
    return note.exists && !own.empty() && printable(own) != note.rdma;
}

void tell(spank_t spank) {
    std::uint32_t job = 0, step = 0;
    if (!get(spank, S_JOB_ID, job) || !get(spank, S_JOB_STEPID, step)) return;
    const auto note = read_note(job);
    if (is_first_step(step))
        for (const auto& remark : note.remarks) slurm_spank_log("%s", remark.c_str());
    if (has_other_option(spank, note))
        slurm_spank_log("rdmaquota: --rdma belongs to a whole job: this is a step of job %u, whose quota stands", job);
}

// What returns from here is run, whatever it returns: the plugin is an optional one.
void refuse_other_option(spank_t spank) {
    std::uint32_t job = 0;
    if (get(spank, S_JOB_ID, job) && has_other_option(spank, read_note(job))) ::_exit(1);
}

template <class Work>
int softly(Work work) noexcept {
    try {
        work();
    } catch (...) {
    }
    return ESPANK_SUCCESS;
}

}  // namespace
}  // namespace rdmaquota

// --- what Slurm looks for --------------------------------------------------------------------------

#define RDMAQUOTA_EXPORT __attribute__((visibility("default")))

extern "C" {

RDMAQUOTA_EXPORT extern const char plugin_name[], plugin_type[];
RDMAQUOTA_EXPORT extern const unsigned int plugin_version, spank_plugin_version;
const char plugin_name[] = "rdmaquota";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

RDMAQUOTA_EXPORT int slurm_spank_init(spank_t spank, int, char**) {
    const auto context = spank_context();
    if (context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR || context == S_CTX_REMOTE)
        (void)spank_option_register(spank, &rdmaquota::option);
    return ESPANK_SUCCESS;
}

RDMAQUOTA_EXPORT int slurm_spank_job_prolog(spank_t spank, int count, char** words) {
    return rdmaquota::softly([&] { rdmaquota::begin(spank, rdmaquota::timeout_of(rdmaquota::Stage::prolog, count, words)); });
}

RDMAQUOTA_EXPORT int slurm_spank_job_epilog(spank_t spank, int count, char** words) {
    return rdmaquota::softly([&] { rdmaquota::end(spank, rdmaquota::timeout_of(rdmaquota::Stage::epilog, count, words)); });
}

RDMAQUOTA_EXPORT int slurm_spank_user_init(spank_t spank, int, char**) {
    return rdmaquota::softly([&] { rdmaquota::tell(spank); });
}

RDMAQUOTA_EXPORT int slurm_spank_task_init(spank_t spank, int, char**) {
    return rdmaquota::softly([&] { rdmaquota::refuse_other_option(spank); });
}

}  // extern "C"

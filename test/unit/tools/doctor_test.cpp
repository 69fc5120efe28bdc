#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "shm/paths.hpp"
#include "test/processes.hpp"
#include "test/unit/temporary_directory.hpp"
#include "test/waiting.hpp"
#include "tools/common/process/probe.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/rdmaquota/doctor/compatibility.hpp"
#include "tools/rdmaquota/doctor/containers.hpp"
#include "tools/common/process/elf_file.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"
#include "tools/rdmaquota/doctor/hardened.hpp"
#include "tools/rdmaquota/doctor/heap_scan.hpp"
#include "tools/rdmaquota/doctor/slurm.hpp"
#include "tools/rdmaquota/doctor/units.hpp"
#include "tools/rdmaquota/doctor/verbs_memory.hpp"

using namespace rdmaquota;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

// Bounds this process's own address space for as long as it lives.
class AddressSpaceLimit {
public:
    explicit AddressSpaceLimit(std::uint64_t more_bytes) {
        ::getrlimit(RLIMIT_AS, &before_);
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlimit bounded{pages * page_bytes + more_bytes, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_AS, &bounded) == 0);
    }
    AddressSpaceLimit(AddressSpaceLimit&&) = delete;
    ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }

private:
    rlimit before_{};
};

class Reservation {
public:
    Reservation(std::size_t bytes, int protection, int file = -1)
        : bytes_(bytes),
          address_(::mmap(nullptr, bytes, protection,
                          file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_PRIVATE, file, 0)) {
        REQUIRE(address_ != MAP_FAILED);
    }
    Reservation(Reservation&&) = delete;
    ~Reservation() { ::munmap(address_, bytes_); }
    std::uint64_t* words() const { return static_cast<std::uint64_t*>(address_); }

private:
    std::size_t bytes_;
    void* address_;
};

std::filesystem::path sparse_copy(const std::filesystem::path& file, std::uint64_t bytes) {
    const auto copy = std::filesystem::temp_directory_path() / ("rdmaquota-doctor-" + std::to_string(::getpid()));
    std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(copy, bytes);
    return copy;
}

}  // namespace

TEST_CASE("the node's row says what is tested") {
    CHECK(compatibility("/lib/libibverbs.so.1.14.44.0", "34", "6.1.0-49-amd64") ==
          "rdma-core 44: tested; kernel 6.1: tested (docs/compatibility.md)");
    CHECK(compatibility("/lib/libibverbs.so.1.14.48.0", "34", "5.14.0-503.el9") ==
          "rdma-core 48: expected to work; kernel 5.14: expected to work (docs/compatibility.md)");
    CHECK(compatibility("/lib/libibverbs.so.1", "59", "4.18.0") ==
          "this libibverbs: expected to work; kernel 4.18: too old for the guard (docs/compatibility.md)");
    CHECK(compatibility("/lib/libibverbs.so", "65", "7.2-rc1") == "this libibverbs: expected to work; kernel 7.2: tested (docs/compatibility.md)");
}

TEST_CASE("of an executable only what is needed is read, however large it is") {
    const auto small = read_elf("/proc/self/exe");
    const auto path = sparse_copy("/proc/self/exe", 3072 * mib);
    {
        const AddressSpaceLimit limit(64 * mib);
        const auto large = read_elf(path);
        REQUIRE(large);
        CHECK(large->interpreted);
        CHECK(large->needed == small->needed);
        CHECK_FALSE(large->needed.empty());
    }
    std::filesystem::remove(path);
}

TEST_CASE("what is no executable is refused with the reason") {
    CHECK_THAT(read_elf("/nowhere").error(), Catch::Contains("No such file"));
    CHECK_THAT(read_elf("/proc/self/status").error(), Catch::Contains("no 64-bit ELF file"));
    CHECK_THAT(read_elf("/").error(), Catch::Contains("no 64-bit ELF file"));
}

TEST_CASE("a mapped library is read up to a bound") {
    const auto path = sparse_copy("/proc/self/exe", 3072 * mib);
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    {
        const Reservation mapped(3072 * mib, PROT_READ, file);
        const auto memory = ProcessMemory::open(::getpid());
        REQUIRE(memory);
        const AddressSpaceLimit limit(64 * mib);
        CHECK(adoption_of(*memory, path) == Adoption::no_table);
    }
    ::close(file);
    std::filesystem::remove(path);
}

TEST_CASE("allocated memory is found behind reservations of any size") {
    // Mappings are looked through by address; new ones are put below those that are there.
    const Reservation last(page_bytes, PROT_READ | PROT_WRITE);
    const Reservation first(std::size_t{1} << 40, PROT_READ | PROT_WRITE);
    last.words()[3] = 0x1234'5678'9abc'def0;
    first.words()[0] = 1;
    const auto memory = ProcessMemory::open(::getpid());
    REQUIRE(memory);
    const AddressSpaceLimit limit(64 * mib);
    const auto begin = cpu_seconds();
    std::size_t seen = 0;
    bool found = false;
    scan_heap(*memory, [&](std::uint64_t address, std::uint64_t word) {
        ++seen;
        found = found || (address == reinterpret_cast<std::uint64_t>(&last.words()[3]) && word == last.words()[3]);
        return !found;
    });
    CHECK(found);
    CHECK(seen * 8 < 1024 * mib);
    CHECK(cpu_seconds() - begin < 20);
}

TEST_CASE("jobs' cgroups are found in each slice, as jobs' tenants match them") {
    const TemporaryDirectory root;
    for (const auto* path : {"system.slice/slurmstepd.scope/job_1/step_0", "system.slice/slurmstepd.scope/system",
                             "hpc.slice/node1_slurmstepd.scope/job_2", "user.slice/user-1.slice/slurmstepd.scope/job_3",
                             "init.scope/slurmstepd.scope/job_4"})
        std::filesystem::create_directories(root / path);
    auto found = job_cgroups(root.path());
    std::sort(found.jobs.begin(), found.jobs.end());
    CHECK(found.jobs == std::vector<std::uint32_t>{1, 2});
    CHECK(found.unnumbered.empty());
    std::filesystem::create_directories(root / "hpc.slice/node1_slurmstepd.scope/jabc");
    CHECK(job_cgroups(root.path()).unnumbered == "jabc");
}

TEST_CASE("only root's slurmd in its unit's cgroup is examined") {
    const std::string root = "Name:\tslurmd\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n", comm = "slurmd\n";
    CHECK(is_roots_slurmd(comm, root, "0::/system.slice/slurmd.service\n"));
    CHECK(is_roots_slurmd(comm, root, "12:pids:/x\n1:name=systemd:/system.slice/slurmd@node1.service/inner\n"));
    CHECK(!is_roots_slurmd("sh\n", root, "0::/system.slice/slurmd.service\n"));
    CHECK(!is_roots_slurmd(comm, "Uid:\t1000\t0\t0\t0\n", "0::/system.slice/slurmd.service\n"));
    CHECK(!is_roots_slurmd(comm, "Name:\tx\nUid:\t1000\t0\t0\t0\n", "0::/system.slice/slurmd.service\n"));
    CHECK(!is_roots_slurmd(comm, root, "0::/user.slice/user-1000.slice/user@1000.service/app.slice/slurmd.service\n"));
    CHECK(!is_roots_slurmd(comm, root, "0::/system.slice/ssh.service\n"));
    CHECK(!is_roots_slurmd(comm, root, ""));
}

TEST_CASE("what a probe has started ends with it") {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    {
        const Probe probe([&]() -> std::string {
            if (::fork() == 0)
                for (;;) ::pause();  // and holds the pipe
            return "started";
        });
        REQUIRE(probe.answer() == "started");
        ::close(ends[1]);
    }
    char end;
    CHECK(::read(ends[0], &end, 1) == 0);
    ::close(ends[0]);
}

TEST_CASE("what only root sees is no problem for others") {
    const TemporaryDirectory directory;
    const TenantPlace place{"blue", here_path(directory.path(), "blue")};
    std::filesystem::create_directories(place.here);
    std::filesystem::permissions(tenant_directory(directory.path(), "blue"), std::filesystem::perms::none);
    CHECK(place.is_hidden() == (::geteuid() != 0));
    const auto seen_by_nobody = [&] {
        constexpr uid_t nobody = 65534;
        if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) throw std::runtime_error("setresuid");
        Findings findings;
        examine_slurmd(findings, 1);
        const bool told = findings.size() == 1 && findings[0].level == Level::warning &&
                          findings[0].text.find("only root sees") != std::string::npos;
        if (!told || !place.is_hidden()) throw std::runtime_error("a problem");
    };
    std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
    ChildProcess child(seen_by_nobody);
    CHECK(child.wait() == 0);
}

TEST_CASE("a specification for containers is whole when it is what would be written now") {
    const TemporaryDirectory directory;
    const auto written = [](const std::string& links) {
        return R"({"cdiVersion": "0.3.0", "kind": "rdmaquota.io/tenant", "devices": [{"name": "a:b", "containerEdits": {
            "mounts": [)" + links + R"(]}}]})";
    };
    const std::string link = R"({"hostPath": "/34"})", links = link + R"(, {"hostPath": "/65"})";
    std::string asked;
    Result<Json> now = Json::parse(written(links));
    const auto found = [&](const std::string& text) {
        std::ofstream(directory / "one.json") << text;
        Findings findings;
        examine_containers(
            findings, [&](const std::string& tenant) { return asked = tenant, now; }, {directory.path(), "/nowhere"});
        return findings;
    };

    REQUIRE(found(written(links)).size() == 1);
    CHECK(found(written(links))[0].level == Level::ok);
    CHECK(asked == "a/b");
    const auto older = found(written(link))[0];
    CHECK(older.level == Level::problem);
    CHECK_THAT(older.text, Catch::Contains("rdmaquota cdi a/b --output"));
    CHECK(found(R"({"kind": "other.io/gpu", "devices": 7})").empty());
    CHECK(found("no JSON").empty());
    CHECK(found(R"({"kind": "rdmaquota.io/tenant", "devices": [7]})")[0].level == Level::problem);

    now = Json();
    const auto hidden = found(written(links))[0];
    CHECK(hidden.level == Level::warning);
    CHECK_THAT(hidden.text, Catch::Contains("only root sees"));

    now = Error{"the running policy has no tenant 'a/b'"};
    const auto gone = found(written(links))[0];
    CHECK(gone.level == Level::problem);
    CHECK_THAT(gone.text, Catch::Contains("has no tenant 'a/b'; containers of tenant a/b do not start"));
}

TEST_CASE("which kernels are too old for the guard") {
    CHECK(too_old_for_guard("x86_64", "6.1.0-56-amd64").empty());
    CHECK(too_old_for_guard("x86_64", "5.18.0").empty());
    CHECK(too_old_for_guard("x86_64", "5.17.9") == "the kernel is 5.17.9, and it needs 5.18 or newer on x86_64");
    CHECK(too_old_for_guard("aarch64", "6.4.0-arm64").empty());
    CHECK(too_old_for_guard("aarch64", "6.1.0-56-arm64") == "the kernel is 6.1.0-56-arm64, and it needs 6.4 or newer on aarch64");
    CHECK(too_old_for_guard("riscv64", "6.12.1") == "it is not known to work on riscv64");
}

TEST_CASE("doctor says which unit will not run after the next boot") {
    namespace fs = std::filesystem;
    const TemporaryDirectory root;
    const auto found = [&] {
        Findings findings;
        examine_units(findings, root / "run/rdmaquota", root.path());
        std::string all;
        for (const auto& finding : findings)
            all += (finding.level == Level::ok ? "ok " : "warning ") + finding.subject + "; ";
        return all;
    };
    const auto file = [&](const std::string& path) {
        fs::create_directories(fs::path(root / path).parent_path());
        std::ofstream(root / path) << "\n";
    };
    file("usr/lib/systemd/system/rdmaquota.service");
    CHECK(found().empty());  // no systemd
    fs::create_directories(root / "run/systemd/system");
    CHECK(found() == "warning boot; ");
    file("etc/systemd/system/multi-user.target.wants/rdmaquota.service");
    CHECK(found() == "ok boot; ");
    file("usr/lib/systemd/system/rdmaquotad.service");
    CHECK(found() == "ok boot; warning sidecar; ");
}

TEST_CASE("doctor prints a drop-in for a service, quoted for a shell") {
    CHECK(drop_in_for("db\\x2d1.service") ==
          "mkdir -p '/etc/systemd/system/db\\x2d1.service.d' && printf '[Service]\\nBindPaths=-/run/rdmaquota\\n' > "
          "'/etc/systemd/system/db\\x2d1.service.d/rdmaquota.conf' && systemctl daemon-reload && systemctl restart "
          "'db\\x2d1.service'");
    for (const auto* unit : {"session-1.scope", "user@1000.service", "it's.service", ""})
        CHECK(drop_in_for(unit).empty());
}

TEST_CASE("doctor tells of an enforcing SELinux") {
    namespace fs = std::filesystem;
    const TemporaryDirectory root;
    const auto found = [&] {
        Findings findings;
        examine_hardening(findings, system_directory, root.path());
        return findings;
    };
    fs::create_directories(root / "sys/fs/selinux");
    std::ofstream(root / "sys/fs/selinux/enforce") << "0";
    CHECK(found().empty());
    std::ofstream(root / "sys/fs/selinux/enforce") << "1";
    const auto findings = found();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].level == Level::warning);
    CHECK_THAT(findings[0].text, Catch::Contains("ausearch -m avc") && Catch::Contains("docs/hardened.md"));
}

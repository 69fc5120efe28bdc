// The parts of Slurm's plugin that need no Slurm; what slurm.conf says is for the doctor, too.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include "test/unit/temporary_directory.hpp"
#include "tools/slurm/bounded.hpp"
#include "tools/slurm/slurm_conf.hpp"

using namespace rdmaquota;

namespace {

struct Conf : TemporaryDirectory {
    void write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((std::filesystem::path(path()) / name).parent_path());
        std::ofstream(*this / name) << text;
    }
    int prolog(const std::string& text) const { return of(text, Stage::prolog); }
    int epilog(const std::string& text) const { return of(text, Stage::epilog); }

private:
    int of(const std::string& text, Stage stage) const {
        write("slurm.conf", text);
        return slurms_timeout(*this / "slurm.conf", stage);
    }
};

}  // namespace

TEST_CASE("a prolog and an epilog have each what slurm.conf gives them, the smallest") {
    const Conf conf;
    CHECK(conf.prolog("ClusterName=a\n") == 0);
    CHECK(slurms_timeout("/nowhere/slurm.conf", Stage::prolog) == 0);
    CHECK(conf.prolog("PrologEpilogTimeout=40\n") == 40);
    CHECK(conf.epilog("PrologEpilogTimeout=40\n") == 40);
    const std::string each = "PrologTimeout=20\nEpilogTimeout=30\n";
    CHECK(conf.prolog(each) == 20);
    CHECK(conf.epilog(each) == 30);
    CHECK(conf.prolog("PrologEpilogTimeout=10\n" + each) == 10);
    CHECK(conf.epilog(each + "PrologEpilogTimeout=25\n") == 25);
    CHECK(conf.prolog("PrologEpilogTimeout=65534\nPrologTimeout=50\n") == 50);
}

TEST_CASE("slurm.conf is read as Slurm reads it") {
    const Conf conf;
    CHECK(conf.prolog("  prologTIMEOUT = 20  # why\n") == 20);
    CHECK(conf.prolog("Prolog=/x/y PrologTimeout=\"20\" Epilog=/z\n") == 20);
    CHECK(conf.prolog("Prolog=/x/y \\\nPrologTimeout=20\n") == 20);
    CHECK(conf.prolog("PrologTimeout=20\nPrologTimeout=30\n") == 30);
    CHECK(conf.prolog("#PrologTimeout=20\nMyPrologTimeout=5\nPrologTimeouts=5\n") == 0);
}

TEST_CASE("files that slurm.conf includes count, from their own directories") {
    const Conf conf;
    conf.write("more/times.conf", "PrologTimeout=20\ninclude deeper.conf\n");
    conf.write("more/deeper.conf", "EpilogTimeout=30\n");
    CHECK(conf.prolog("Include more/times.conf\n") == 20);
    CHECK(conf.epilog("INCLUDE\tmore/times.conf\n") == 30);
    CHECK(conf.prolog("Include " + (conf / "more/times.conf") + "\n") == 20);
    CHECK(conf.prolog("Include more/nowhere.conf\nPrologTimeout=7\nInclude slurm.conf\n") == 7);
}

TEST_CASE("how Slurm tracks processes is read from its configuration") {
    const Conf conf;
    const auto tracking = [&](const std::string& text) {
        conf.write("slurm.conf", text);
        return slurms_tracking(conf / "slurm.conf");
    };
    conf.write("track.conf", "ProctrackType=proctrack/pgid\n");
    CHECK(tracking("ClusterName=a\nProctrackType=proctrack/cgroup#as ever\n") == "proctrack/cgroup");
    CHECK(tracking("  proctracktype = proctrack/linuxproc   # why\n") == "proctrack/linuxproc");
    CHECK(tracking("Include track.conf\n") == "proctrack/pgid");
    CHECK(tracking("#ProctrackType=proctrack/pgid\nProctrackTypes=x\n").empty());
    CHECK(slurms_tracking("/nowhere/slurm.conf").empty());
    CHECK(slurms_tracking("/dev/zero").empty());
    const auto fifo = conf / "fifo";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(slurms_tracking(fifo).empty());
}

TEST_CASE("a command ends with its status, a signal, or when its time is over") {
    const auto run = [](const std::string& script) { return run_bounded({"/bin/sh", "-c", script}, "/usr/bin:/bin", 2); };
    const auto done = run("echo said; exit 3");
    CHECK(done.status == 3);
    CHECK(done.output == "said\n");
    const auto killed = run("echo said; kill -9 $$");
    CHECK(killed.status == -1);
    CHECK_THAT(killed.output, Catch::Contains("killed by signal 9"));
    const auto late = run("exec sleep 60");
    CHECK(late.status == -1);
    CHECK_THAT(late.output, Catch::Contains("took longer than 2 s"));
}

// An open context of a device that is not there, with a ledger of its own: the wrappers are the
// provider's, the real ops are the test's. For what rxe cannot be brought to do.
#pragma once

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>

#include <sys/stat.h>

#include "provider/ops/ops.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"

namespace rdmaquota {

// For a test that reads the log: a process writes ten lines a second, and the tests before may have used them up.
inline void wait_until_lines_are_admitted() {
    const auto now = std::chrono::steady_clock::now();
    std::this_thread::sleep_until(std::chrono::ceil<std::chrono::seconds>(now + std::chrono::milliseconds(1)));
}

struct WrappedContext {
    TemporaryDirectory directory;
    ibv_context verbs{};

    explicit WrappedContext(const TenantLimits& limits = {}) {
        REQUIRE(LimitsWriter::publish(limits_path(directory.path()), limits));
        REQUIRE(mkdir((directory / "ledgers").c_str(), 0755) == 0);
        REQUIRE(Ledger::create(ledger_path(directory.path()), {}));
        setenv("RDMAQUOTA_DIR", directory.path().c_str(), 1);
        provider::Context::add(&verbs, new provider::Context("fake0", "fake0"));
    }
    WrappedContext(const WrappedContext&) = delete;
    ~WrappedContext() {
        delete provider::Context::remove(&verbs);
        unsetenv("RDMAQUOTA_DIR");
    }

    // The wrapper of `op`, which will call `real`.
    template <class Function>
    Function* wrapped(provider::Op op, Function* real) {
        auto& context = *provider::Context::find(&verbs);
        context.set_real(op, reinterpret_cast<provider::OpPointer>(real));
        context.begin_reports(verbs);
        for (const auto wrappers : provider::all_ops())
            for (const auto& wrapper : wrappers)
                if (wrapper.op == op) return reinterpret_cast<Function*>(wrapper.function);
        FAIL("the op is not wrapped");
        return nullptr;
    }

    // What all processes use of it.
    std::uint64_t usage(Resource resource, std::string_view device = "fake0") const {
        auto ledger = Ledger::open(ledger_path(directory.path()));
        REQUIRE(ledger);
        for (const auto& [number, identity, name] : ledger->devices())
            if (name == device) return ledger->tenant_usage(number, resource);
        return 0;
    }
};

}  // namespace rdmaquota

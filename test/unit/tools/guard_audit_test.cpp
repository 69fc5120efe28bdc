#include <catch2/catch.hpp>

#include <memory>

#include "tools/rdmaquotad/guard/guard_audit.hpp"

using namespace rdmaquota;

namespace {

// Two files that count in the same row of a tenant.
struct Tables {
    std::unique_ptr<guard_row[]> rows = std::make_unique<guard_row[]>(guard_rows);
    std::unique_ptr<guard_file[]> files = std::make_unique<guard_file[]>(opener_slots);
    static constexpr u32 tenant = process_rows + 3;

    Tables() {
        for (u32 i = 0; i < 2; ++i) {
            auto& file = files[i];
            file.id = 1 + i;
            file.stamp.count = 1;
            file.stamp.rows[0] = tenant;
            file.waits = waits_known | waits_moved;
            file.held[kind_pd] = 2;
        }
        rows[tenant].used[kind_pd] = 4;
    }
    u64& used() { return rows[tenant].used[kind_pd]; }
    std::size_t pass(GuardAudit& audit) { return audit.pass(rows.get(), files.get()); }
};

}  // namespace

TEST_CASE("a difference that stays is corrected") {
    Tables tables;
    GuardAudit audit;
    CHECK(tables.pass(audit) == 0);
    tables.used() = 5;
    CHECK(tables.pass(audit) == 0);
    CHECK(tables.pass(audit) == 0);
    CHECK(tables.used() == 5);
    CHECK(tables.pass(audit) == 1);
    CHECK(tables.used() == 4);
}

TEST_CASE("a difference that changes is left alone: something is being made") {
    Tables tables;
    GuardAudit audit;
    for (u64 i = 0; i < 8; ++i) {
        tables.used() = 5 + i % 2;
        CHECK(tables.pass(audit) == 0);
    }
}

TEST_CASE("what moves from file to file while they are read is left alone") {
    Tables tables;
    GuardAudit audit;
    tables.files[0].held[kind_pd] = 1;  // each pass meets one of the four objects nowhere
    for (int i = 0; i < 8; ++i) {
        CHECK(tables.pass(audit) == 0);
        ++tables.files[0].returns;
    }
    CHECK(tables.used() == 4);
}

TEST_CASE("another file in a file's place is not taken for it") {
    Tables tables;
    GuardAudit audit;
    tables.used() = 5;
    for (u64 i = 0; i < 8; ++i) {
        tables.files[0].id += opener_slots;
        CHECK(tables.pass(audit) == 0);
    }
}

TEST_CASE("what nobody holds any more is given back") {
    Tables tables;
    GuardAudit audit;
    tables.files[0].id = 0;
    for (int i = 0; i < 3; ++i) tables.pass(audit);
    CHECK(tables.used() == 2);
    tables.files[1].stamp.count = 99;  // nonsense
    for (int i = 0; i < 3; ++i) tables.pass(audit);
    CHECK(tables.used() == 2);
}

TEST_CASE("a process's row that no file counts in is free") {
    Tables tables;
    GuardAudit audit;
    for (u32 row : {7U, 8U}) {
        tables.rows[row].process = 0xabc0001;
        tables.rows[row].pid = 1234;
        tables.rows[row].used[kind_pd] = 2;
    }
    tables.files[0].stamp.rows[0] = 7;
    tables.used() = 2;
    for (int i = 0; i < 2; ++i) CHECK(tables.pass(audit) == 0);
    CHECK(tables.pass(audit) == 1);
    CHECK(tables.rows[7].process == 0xabc0001);
    CHECK(tables.rows[7].used[kind_pd] == 2);
    CHECK(tables.rows[8].process == 0);
    CHECK(tables.rows[8].pid == 0);
    CHECK(tables.rows[8].used[kind_pd] == 0);
}

TEST_CASE("a process's row that a file is about to enter is not free") {
    Tables tables;
    GuardAudit audit;
    tables.rows[8].process = 0xabc0001;
    tables.files[0].enters_row = 8;
    for (int i = 0; i < 5; ++i) CHECK(tables.pass(audit) == 0);
    CHECK(tables.rows[8].process == 0xabc0001);
}

TEST_CASE("a process's row that files enter and leave while they are read is not free") {
    Tables tables;
    GuardAudit audit;
    tables.rows[8].process = 0xabc0001;
    for (int i = 0; i < 8; ++i) {
        CHECK(tables.pass(audit) == 0);
        ++tables.rows[8].entered;
    }
}

#include <catch2/catch.hpp>

#include "policy/limit.hpp"
#include "policy/policy.hpp"

using namespace rdmaquota;

TEST_CASE("limits are read with units") {
    const auto read = [](Resource r, const char* text) {
        auto limit = parse_limit(r, text);
        INFO(text);
        REQUIRE(limit);
        return limit.value();
    };
    CHECK(read(Resource::qp, "0") == 0);
    CHECK(read(Resource::qp, "10") == 10);
    CHECK(read(Resource::qp, "10k") == 10'000);
    CHECK(read(Resource::qp, "4Ki") == 4096);
    CHECK(read(Resource::qp, "max") == unlimited);
    CHECK(read(Resource::mr_bytes, "4GiB") == 4ULL << 30);
    CHECK(read(Resource::mr_bytes, "1.5GB") == 1'500'000'000);
    CHECK(read(Resource::mr_bytes, "0.5KiB") == 512);
    CHECK(read(Resource::mr_bytes, "4503599627370495") == max_amount);
}

TEST_CASE("what is no limit is refused with a line that says why") {
    for (const char* text : {"", "-1", "-0", "1.5", "ten", "10x", "0x10", "1e3", "nan", "inf", " 1", "1 ", "4GiB",
                             "10B", "99999999999999999999999999", "5e300"})
        CHECK_FALSE(parse_limit(Resource::qp, text));
    CHECK_FALSE(parse_limit(Resource::mr_bytes, "4503599627370496"));
    CHECK_FALSE(parse_limit(Resource::mr_bytes, "5000TiB"));
    CHECK(parse_limit(Resource::qp, "x").error() == "'x' is no limit for qp: write a number such as 10, 10k, or max");
}

TEST_CASE("settings name a resource and a limit") {
    const auto setting = parse_setting("mr_bytes=1GiB");
    REQUIRE(setting);
    CHECK(setting.value().resource == Resource::mr_bytes);
    CHECK(setting.value().limit == 1ULL << 30);
    CHECK_THAT(parse_setting("qps=1").error(),
               Catch::StartsWith("unknown resource 'qps': choose one of hca_object, qp"));
    CHECK_FALSE(parse_setting("qp"));
    CHECK_FALSE(parse_setting("=1"));
}

TEST_CASE("limits are written so that they can be read again") {
    for (const auto limit : {0ULL, 1ULL, 1000ULL, 4096ULL, (1ULL << 30) + 1, 3ULL << 40, 4503599627370495ULL})
        for (const auto resource : {Resource::qp, Resource::mr_bytes}) {
            const auto again = parse_limit(resource, format_limit(resource, limit));
            REQUIRE(again);
            CHECK(again.value() == limit);
        }
    CHECK(format_limit(Resource::qp, unlimited) == "max");
    CHECK(format_limit(Resource::mr_bytes, 1ULL << 32) == "4GiB");
    CHECK(format_amount(Resource::mr_bytes, 1536) == "1.5 KiB");
    CHECK(format_amount(Resource::mr_bytes, 100) == "100");
    CHECK(format_amount(Resource::qp, 4096) == "4096");
}

TEST_CASE("device names") {
    CHECK(valid_device("*"));
    CHECK(valid_device("total"));
    CHECK(valid_device("mlx5_bond_0"));
    CHECK_FALSE(valid_device(""));
    CHECK_FALSE(valid_device("mlx5*"));
    CHECK_FALSE(valid_device("a b"));
    CHECK_FALSE(valid_device(std::string(64, 'a')));
    CHECK(valid_device(std::string(63, 'a')));
}

TEST_CASE("a percentage is read where devices report how many they have, and written as it was") {
    for (const char* text : {"25%", "0.1%", "12.5%", "100%"}) {
        const auto limit = parse_limit(Resource::qp, text);
        INFO(text);
        REQUIRE(limit);
        CHECK(is_percentage(*limit));
        CHECK(format_limit(Resource::qp, *limit) == text);
        CHECK(format_amount(Resource::mr_bytes, *limit) == text);
    }
    CHECK(*parse_limit(Resource::mr_bytes, "25.0%") == percentage(250));
    for (const char* text : {"%", "0%", "0.0%", "0.05%", "100.1%", "1000000000%", "-1%", "25 %", "25k%", "25%%", "x%", ".5%"})
        CHECK_FALSE(parse_limit(Resource::qp, text));
    CHECK(parse_limit(Resource::qp, "120%").error() ==
          "'120%' is not a percentage for qp: write a number above 0 and up to 100, with one decimal at most, such as 25% or 12.5%");
    CHECK(parse_limit(Resource::send_wr, "5%").error() ==
          "send_wr cannot be limited in percent, since no device reports how many it has; write an amount, or limit one of qp, mr, "
          "mr_bytes, cq, pd, srq, mw, ah");
    for (const auto limit : {std::uint64_t{0}, max_amount, unset, unlimited}) CHECK_FALSE(is_percentage(limit));
}

TEST_CASE("a percentage is rounded down, but is never nothing") {
    CHECK(amount_of(percentage(250), 1000) == 250);
    CHECK(amount_of(percentage(125), 999) == 124);
    CHECK(amount_of(percentage(1), 100) == 1);
    CHECK(amount_of(percentage(1000), max_amount) == max_amount);
    CHECK(amount_of(percentage(250), 0) == unlimited);  // nobody knows of what
    CHECK(format_amount(Resource::qp, 250, percentage(250)) == "250 (25%)");
    CHECK(format_amount(Resource::qp, unlimited, percentage(250)) == "25%");
    CHECK(format_amount(Resource::qp, 250, 250) == "250");
}

TEST_CASE("\"all\" gives way to what a resource's own text says") {
    auto row = unset_row();
    for (const auto* text : {"qp=10", "all=25%", "cq=20"}) REQUIRE(add_settings(row, "*", text));
    CHECK(row[index(Resource::qp)] == 10);
    CHECK(row[index(Resource::cq)] == 20);
    CHECK(row[index(Resource::mr)] == percentage(250));
    CHECK(row[index(Resource::mr_bytes)] == percentage(250));
    CHECK(row[index(Resource::send_wr)] == unset);
    CHECK_FALSE(add_settings(row, "*", "all=10"));
    CHECK_FALSE(add_settings(row, "*", "all=120%"));
    CHECK_FALSE(add_settings(row, "total", "qp=25%"));
    auto total = unset_row();
    REQUIRE(add_settings(total, "total", "all=25%"));
    CHECK(total[index(Resource::mr_bytes)] == percentage(250));
    CHECK(total[index(Resource::qp)] == unset);
}

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <string>

#include <unistd.h>

#include "tools/rdmaquotad/loop/question.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

TEST_CASE("the answer is what the child's work returns, whatever it prints") {
    Question question([] {
        std::fputs("libibverbs: Warning: a driver is missing\n", stderr);
        return std::string("qp 7");
    });
    CHECK(question.answer(20s) == "qp 7");
    CHECK(question.answer(0s) == "qp 7");
}

TEST_CASE("an answer that takes long comes later") {
    Question question([] {
        ::usleep(300'000);
        return std::string("qp 7");
    });
    CHECK_FALSE(question.answer(10ms));
    CHECK(question.answer(20s) == "qp 7");
}

TEST_CASE("a child that dies gives an empty answer") {
    Question question([]() -> std::string { std::raise(SIGKILL); return "qp 7"; });
    CHECK(question.answer(20s) == "");
}

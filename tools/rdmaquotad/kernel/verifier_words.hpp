// Why the kernel refused a BPF program, in its verifier's words. One thread.
#pragma once

#include <string>

namespace rdmaquota {

// From now on libbpf prints nothing; what the verifier says is kept.
void keep_verifier_words();

// What it said last, in brackets and with a blank in front, once; empty: nothing.
std::string take_verifier_words();

}  // namespace rdmaquota

// Precompiled for the libraries most of whose files build or read JSON: its headers take two seconds each time.
#include "tools/common/json.hpp"

/* A libibverbs of no known private ABI, as far as the provider can see. */
int stub_ibverbs;

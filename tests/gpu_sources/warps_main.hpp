
/* Runs one kernel: NAME BLOCKS THREADS DROPPED FILE. The file holds, for each argument, its bytes behind their
   number; afterwards it holds them as the kernel left them. */
static FILE* file;

static vector<char> read_argument() {
    long long size;
    if (fread(&size, sizeof size, 1, file) != 1) abort();
    vector<char> bytes(size);
    if (size && fread(bytes.data(), 1, size, file) != (size_t)size) abort();
    return bytes;
}
template <class P> P from_bytes(vector<char>& bytes) {
    if constexpr (is_pointer_v<P>) return (P)bytes.data();
    else return *(P*)bytes.data();
}

template <class... P, size_t... N> void launch(void (*kernel)(P...), index_sequence<N...>) {
    vector<vector<char>> memory;
    for (size_t i = 0; i < sizeof...(P); ++i) memory.push_back(read_argument());
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
        block_barrier = make_unique<barrier<>>(blockDim.x);
        warps_of_block.clear();
        for (int w = 0; w < blockDim.x / 32; ++w) warps_of_block.push_back(make_unique<Warp>());
        vector<thread> lanes;
        for (int lane = 0; lane < blockDim.x; ++lane)
            lanes.emplace_back([&, lane] {
                threadIdx.x = lane;
                kernel(from_bytes<P>(memory[N])...);
            });
        for (auto& lane : lanes) lane.join();
    }
    rewind(file);
    for (auto& bytes : memory) {
        long long size = bytes.size();
        fwrite(&size, sizeof size, 1, file);
        if (size) fwrite(bytes.data(), 1, size, file);
    }
}
template <class... P> void run(void (*kernel)(P...)) { launch(kernel, index_sequence_for<P...>{}); }

int main(int, char** argv) {
    string name = argv[1];
    gridDim.x = atoi(argv[2]);
    blockDim.x = atoi(argv[3]);
    dropped = atoi(argv[4]);
    file = fopen(argv[5], "r+b");
/* kernels */
    fclose(file);
}

# An image in which PyTorch programs run without a GPU (fragsim dry). It is the image of
# Dockerfile with PyTorch's build for CUDA, 2.1 GB; name what the program imports:
#
#   docker build -t fragsim-dry --build-arg WITH="transformers" - < \
#       tests/examples/dry.Dockerfile
#   docker run --rm -v "$PWD:/data" fragsim-dry --gpu t4 -- python train.py
FROM fragsim
ARG WITH=""
RUN apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    --no-install-recommends install gcc libc6-dev python3-dev python3-venv && \
    rm -rf /var/lib/apt/lists/*
RUN PIP_NO_CACHE_DIR=1 fragsim dry --setup /env -- torch $WITH
ENV PATH=/env/bin:$PATH
ENTRYPOINT ["fragsim", "dry"]

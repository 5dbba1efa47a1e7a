# What --verify finds in a kernel on the GPU ends the program, with the place, the kernel and the
# thread.
. ./lib.sh
expect 0 bin/verification.checked gather --arg x=data/verify.x.npy --arg at=data/verify.good.npy \
  --dim y=3 --device cuda
expect 4 bin/verification.checked gather --arg x=data/verify.x.npy --arg at=data/verify.bad.npy \
  --dim y=3 --device cuda
has 'verification.mlir:8'
has 'thread: [1,0,0]'
has 'memref.load: an index is out of bounds for dimension 0'
has 'memref.load: index 8 is out of bounds for dimension 0 of size 8'
has 'gather_kernel'

# A product with a sparse matrix is cuSPARSE's, and added to what is there. Without the library it is
# an error.
. ./lib.sh
product() {
  bin/sparse_library spmv_coo --rows 2 --columns 3 --count 3 --arg rows_of=data/sparse.rows_of.npy \
    --arg indices=data/sparse.indices.npy --arg values=data/sparse.values.npy \
    --arg x=data/sparse.x.npy --arg y=data/sparse.y.npy --expect y=data/sparse.expected.npy \
    --device cuda
}
AOTC_CUSPARSE=/none.so
export AOTC_CUSPARSE
expect 4 product
has 'mgpuCreateCoo: sparse matrices on a GPU need cuSPARSE: /none.so'
unset AOTC_CUSPARSE
output=$(product 2>&1)
case $output in
  *'need cuSPARSE'*) skip 'this machine has no cuSPARSE' ;;
esac
expect 0 product

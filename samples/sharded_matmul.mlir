// D = C + A @ B by several processes, each of which has a part of the matrices:
//
//   aotc build samples/sharded_matmul.mlir
//   mpirun -n 4 ./sharded_matmul columns --A A.npy --B part:1:B.npy --C part:1:C.npy --out 'result0=D.{rank}.npy'
//   mpirun -n 4 ./sharded_matmul inner --A part:1:A.npy --B part:0:B.npy --C C.npy --out 'result0=D.{rank}.npy'
//
// Whole matrices stand here; the program's arguments are one process's parts.
shard.grid @processes(shape = 4)

// Each process has some columns of B, and computes those of D. Nothing is exchanged.
func.func @columns(%A: tensor<64x96xf32>, %B: tensor<96x128xf32>, %C: tensor<64x128xf32>)
    -> tensor<64x128xf32> attributes {llvm.emit_c_interface} {
  %columns = shard.sharding @processes split_axes = [[], [0]] : !shard.sharding
  %b = shard.shard %B to %columns : tensor<96x128xf32>
  %local_b = shard.shard %b to %columns annotate_for_users : tensor<96x128xf32>
  %product = linalg.matmul ins(%A, %local_b : tensor<64x96xf32>, tensor<96x128xf32>)
                           outs(%C : tensor<64x128xf32>) -> tensor<64x128xf32>
  %d = shard.shard %product to %columns : tensor<64x128xf32>
  %local_d = shard.shard %d to %columns annotate_for_users : tensor<64x128xf32>
  return %local_d : tensor<64x128xf32>
}

// Each process has some columns of A and the same rows of B. The processes add what they compute,
// and each has the whole D.
func.func @inner(%A: tensor<64x96xf32>, %B: tensor<96x128xf32>, %C: tensor<64x128xf32>)
    -> tensor<64x128xf32> attributes {llvm.emit_c_interface} {
  %of_a = shard.sharding @processes split_axes = [[], [0]] : !shard.sharding
  %of_b = shard.sharding @processes split_axes = [[0]] : !shard.sharding
  %whole = shard.sharding @processes split_axes = [[]] : !shard.sharding
  %a = shard.shard %A to %of_a : tensor<64x96xf32>
  %local_a = shard.shard %a to %of_a annotate_for_users : tensor<64x96xf32>
  %b = shard.shard %B to %of_b : tensor<96x128xf32>
  %local_b = shard.shard %b to %of_b annotate_for_users : tensor<96x128xf32>
  %product = linalg.matmul ins(%local_a, %local_b : tensor<64x96xf32>, tensor<96x128xf32>)
                           outs(%C : tensor<64x128xf32>) -> tensor<64x128xf32>
  %d = shard.shard %product to %whole : tensor<64x128xf32>
  %sum = shard.shard %d to %whole annotate_for_users : tensor<64x128xf32>
  return %sum : tensor<64x128xf32>
}

module attributes {gpu.container_module} {
  func.func @program(%arg0: memref<40x64xf32> {aotc.name = "x"}, %arg1: memref<70xi64> {aotc.name = "i"}, %arg2: memref<70x64xf32> {aotc.name = "y"}, %arg3: memref<40x64xf32> {aotc.name = "result0"}) attributes {aotc.call = "{\22inputs\22: \22[1, {\\\22type\\\22: \\\22builtins.tuple\\\22, \\\22context\\\22: \\\22null\\\22, \\\22children_spec\\\22: [{\\\22type\\\22: \\\22builtins.tuple\\\22, \\\22context\\\22: \\\22null\\\22, \\\22children_spec\\\22: [{\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}]}, {\\\22type\\\22: \\\22builtins.dict\\\22, \\\22context\\\22: \\\22[]\\\22, \\\22children_spec\\\22: []}]}]\22, \22outputs\22: \22[1, {\\\22type\\\22: null, \\\22context\\\22: null, \\\22children_spec\\\22: []}]\22, \22names\22: [\22x\22, \22i\22, \22y\22], \22given\22: [{\22dtype\22: \22float32\22, \22constant\22: null}, {\22dtype\22: \22int64\22, \22constant\22: null}, {\22dtype\22: \22float32\22, \22constant\22: null}], \22returned\22: [{\22dtype\22: \22float32\22, \22constant\22: null}]}", aotc.one_stream, aotc.workspace_bytes = 209920 : i64, llvm.emit_c_interface} {
    %c5 = arith.constant 5 : index
    %c10 = arith.constant 10 : index
    %c18 = arith.constant 18 : index
    %c256 = arith.constant 256 : index
    %c35 = arith.constant 35 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c9 = arith.constant 9 : index
    %c2 = arith.constant 2 : index
    %c1024 = arith.constant 1024 : index
    %c1_i32 = arith.constant 1 : i32
    %c1 = arith.constant 1 : index
    %0 = gpu.wait async
    %memref, %asyncToken = gpu.alloc async [%0] () : memref<209920xi8>
    gpu.wait [%asyncToken]
    %c71680 = arith.constant 71680 : index
    %c107520 = arith.constant 107520 : index
    %c0 = arith.constant 0 : index
    %c179200 = arith.constant 179200 : index
    %c189440 = arith.constant 189440 : index
    %c125440 = arith.constant 125440 : index
    %c143360 = arith.constant 143360 : index
    %c199680 = arith.constant 199680 : index
    %c161280 = arith.constant 161280 : index
    %view = memref.view %memref[%c71680][] : memref<209920xi8> to memref<70x64xi64>
    gpu.launch_func  @program_kernels::@program_kernel blocks in (%c2, %c9, %c1) threads in (%c32, %c8, %c1)  args(%arg1 : memref<70xi64>, %view : memref<70x64xi64>)
    %view_0 = memref.view %memref[%c107520][] : memref<209920xi8> to memref<4480xf32>
    %view_1 = memref.view %memref[%c0][] : memref<209920xi8> to memref<4480x2xi64>
    %collapse_shape = memref.collapse_shape %view_1 [[0, 1]] : memref<4480x2xi64> into memref<8960xi64>
    gpu.launch_func  @program_kernels::@program_kernel_0 blocks in (%c35, %c1, %c1) threads in (%c256, %c1, %c1)  args(%collapse_shape : memref<8960xi64>)
    %subview = memref.subview %view_1[0, 0] [4480, 1] [1, 1] : memref<4480x2xi64> to memref<4480xi64, strided<[2]>>
    %subview_2 = memref.subview %view_1[0, 1] [4480, 1] [1, 1] : memref<4480x2xi64> to memref<4480xi64, strided<[2], offset: 1>>
    gpu.launch_func  @program_kernels::@program_kernel_1 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view : memref<70x64xi64>, %arg2 : memref<70x64xf32>, %subview : memref<4480xi64, strided<[2]>>, %view_0 : memref<4480xf32>, %subview_2 : memref<4480xi64, strided<[2], offset: 1>>)
    %view_3 = memref.view %memref[%c71680][] : memref<209920xi8> to memref<2560xi32>
    gpu.launch_func  @program_kernels::@program_kernel_2 blocks in (%c10, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_3 : memref<2560xi32>)
    gpu.launch_func  @program_kernels::@program_kernel_3 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_1 : memref<4480x2xi64>, %view_3 : memref<2560xi32>)
    %view_4 = memref.view %memref[%c179200][] : memref<209920xi8> to memref<40x64xf32>
    gpu.launch_func  @program_kernels::@program_kernel_4 blocks in (%c2, %c5, %c1) threads in (%c32, %c8, %c1)  args(%arg0 : memref<40x64xf32>, %view_3 : memref<2560xi32>, %view_4 : memref<40x64xf32>)
    gpu.launch_func  @program_kernels::@program_kernel_2 blocks in (%c10, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_3 : memref<2560xi32>)
    gpu.launch_func  @program_kernels::@program_kernel_3 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_1 : memref<4480x2xi64>, %view_3 : memref<2560xi32>)
    %view_5 = memref.view %memref[%c189440][] : memref<209920xi8> to memref<40x64xf32>
    gpu.launch_func  @program_kernels::@program_kernel_5 blocks in (%c2, %c5, %c1) threads in (%c32, %c8, %c1)  args(%view_3 : memref<2560xi32>, %view_5 : memref<40x64xf32>)
    gpu.launch_func  @program_kernels::@program_kernel_6 blocks in (%c10, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_3 : memref<2560xi32>)
    %view_6 = memref.view %memref[%c125440][] : memref<209920xi8> to memref<4480xi32>
    %view_7 = memref.view %memref[%c143360][] : memref<209920xi8> to memref<4480xi32>
    gpu.launch_func  @program_kernels::@program_kernel_7 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_1 : memref<4480x2xi64>, %view_6 : memref<4480xi32>, %view_3 : memref<2560xi32>, %view_7 : memref<4480xi32>)
    %view_8 = memref.view %memref[%c199680][] : memref<209920xi8> to memref<2560xi32>
    %1 = call @aotc_compute_capability() : () -> i32
    %2 = arith.cmpi sge, %1, %c1_i32 : i32
    scf.if %2 {
      gpu.launch_func  @program_kernel_gpu::@program_kernel blocks in (%c1, %c1, %c1) threads in (%c1024, %c1, %c1)  args(%view_3 : memref<2560xi32>, %view_8 : memref<2560xi32>)
    } else {
      gpu.launch_func  @program_kernels_cpu::@program_kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_3 : memref<2560xi32>, %view_8 : memref<2560xi32>)
    }
    %view_9 = memref.view %memref[%c71680][] : memref<209920xi8> to memref<4480xi64>
    %view_10 = memref.view %memref[%c161280][] : memref<209920xi8> to memref<4480xi32>
    gpu.launch_func  @program_kernels::@program_kernel_8 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_6 : memref<4480xi32>, %view_8 : memref<2560xi32>, %view_7 : memref<4480xi32>, %view_9 : memref<4480xi64>, %view_10 : memref<4480xi32>)
    gpu.launch_func  @program_kernels::@program_kernel_9 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_8 : memref<2560xi32>, %view_9 : memref<4480xi64>, %view_10 : memref<4480xi32>)
    gpu.launch_func  @program_kernels::@program_kernel_10 blocks in (%c2, %c5, %c1) threads in (%c32, %c8, %c1)  args(%view_8 : memref<2560xi32>, %view_4 : memref<40x64xf32>, %view_10 : memref<4480xi32>, %view_0 : memref<4480xf32>)
    gpu.launch_func  @program_kernels::@program_kernel_6 blocks in (%c10, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_3 : memref<2560xi32>)
    gpu.launch_func  @program_kernels::@program_kernel_11 blocks in (%c18, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_1 : memref<4480x2xi64>, %view_3 : memref<2560xi32>)
    %view_11 = memref.view %memref[%c0][] : memref<209920xi8> to memref<2560xi32>
    %3 = call @aotc_compute_capability() : () -> i32
    %4 = arith.cmpi sge, %3, %c1_i32 : i32
    scf.if %4 {
      gpu.launch_func  @program_kernel_gpu::@program_kernel blocks in (%c1, %c1, %c1) threads in (%c1024, %c1, %c1)  args(%view_3 : memref<2560xi32>, %view_11 : memref<2560xi32>)
    } else {
      gpu.launch_func  @program_kernels_cpu::@program_kernel blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)  args(%view_3 : memref<2560xi32>, %view_11 : memref<2560xi32>)
    }
    gpu.launch_func  @program_kernels::@program_kernel_12 blocks in (%c2, %c5, %c1) threads in (%c32, %c8, %c1)  args(%view_11 : memref<2560xi32>, %view_5 : memref<40x64xf32>)
    %collapse_shape_12 = memref.collapse_shape %view_4 [[0, 1]] : memref<40x64xf32> into memref<2560xf32>
    %collapse_shape_13 = memref.collapse_shape %view_5 [[0, 1]] : memref<40x64xf32> into memref<2560xf32>
    %collapse_shape_14 = memref.collapse_shape %arg3 [[0, 1]] : memref<40x64xf32> into memref<2560xf32>
    gpu.launch_func  @program_kernels::@program_kernel_13 blocks in (%c10, %c1, %c1) threads in (%c256, %c1, %c1)  args(%collapse_shape_12 : memref<2560xf32>, %collapse_shape_13 : memref<2560xf32>, %collapse_shape_14 : memref<2560xf32>)
    %5 = gpu.wait async
    %6 = gpu.dealloc async [%5] %memref : memref<209920xi8>
    gpu.wait [%6]
    return
  }
  gpu.module @program_kernels {
    gpu.func @program_kernel(%arg0: memref<70xi64>, %arg1: memref<70x64xi64>) kernel attributes {known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 2, 9, 1>} {
      %c70 = arith.constant 70 : index
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %0 = arith.muli %block_id_y, %c8 : index
      %1 = arith.addi %0, %thread_id_y : index
      %2 = arith.cmpi slt, %1, %c70 : index
      scf.if %2 {
        %3 = arith.muli %block_id_x, %c32 : index
        %4 = arith.addi %3, %thread_id_x : index
        %5 = memref.load %arg0[%1] : memref<70xi64>
        memref.store %5, %arg1[%1, %4] : memref<70x64xi64>
      }
      gpu.return
    }
    gpu.func @program_kernel_0(%arg0: memref<8960xi64>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 35, 1, 1>} {
      %c0_i64 = arith.constant 0 : i64
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      memref.store %c0_i64, %arg0[%1] : memref<8960xi64>
      gpu.return
    }
    gpu.func @program_kernel_1(%arg0: memref<70x64xi64>, %arg1: memref<70x64xf32>, %arg2: memref<4480xi64, strided<[2]>>, %arg3: memref<4480xf32>, %arg4: memref<4480xi64, strided<[2], offset: 1>>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>} {
      %c70 = arith.constant 70 : index
      %c64 = arith.constant 64 : index
      %c4480 = arith.constant 4480 : index
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = arith.cmpi slt, %1, %c4480 : index
      scf.if %2 {
        %3 = arith.remsi %1, %c64 : index
        %4 = arith.divsi %1, %c64 : index
        %5 = arith.remsi %4, %c70 : index
        %6 = memref.load %arg0[%5, %3] : memref<70x64xi64>
        %7 = memref.load %arg1[%5, %3] : memref<70x64xf32>
        %8 = arith.index_cast %3 : index to i64
        memref.store %6, %arg2[%1] : memref<4480xi64, strided<[2]>>
        memref.store %7, %arg3[%1] : memref<4480xf32>
        memref.store %8, %arg4[%1] : memref<4480xi64, strided<[2], offset: 1>>
      }
      gpu.return
    }
    gpu.func @program_kernel_2(%arg0: memref<2560xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 10, 1, 1>} {
      %c-1_i32 = arith.constant -1 : i32
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      memref.store %c-1_i32, %arg0[%1] : memref<2560xi32>
      gpu.return
    }
    gpu.func @program_kernel_3(%arg0: memref<4480x2xi64>, %arg1: memref<2560xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>} {
      %c64 = arith.constant 64 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c40_i64 = arith.constant 40 : i64
      %c64_i64 = arith.constant 64 : i64
      %c4480 = arith.constant 4480 : index
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = arith.cmpi slt, %1, %c4480 : index
      scf.if %2 {
        %3 = memref.load %arg0[%1, %c0] : memref<4480x2xi64>
        %4 = memref.load %arg0[%1, %c1] : memref<4480x2xi64>
        %5 = arith.cmpi ult, %3, %c40_i64 : i64
        %6 = arith.cmpi ult, %4, %c64_i64 : i64
        %7 = arith.andi %5, %6 : i1
        %8 = arith.index_cast %3 : i64 to index
        %9 = arith.select %7, %8, %c0 : index
        %10 = arith.index_cast %4 : i64 to index
        %11 = arith.select %7, %10, %c0 : index
        %12 = arith.muli %9, %c64 : index
        %13 = arith.addi %12, %11 : index
        cf.assert %7, "an index is out of bounds"
        %14 = arith.index_cast %1 : index to i32
        scf.if %7 {
          %15 = memref.atomic_rmw maxs %14, %arg1[%13] : (i32, memref<2560xi32>) -> i32
        }
      }
      gpu.return
    }
    gpu.func @program_kernel_4(%arg0: memref<40x64xf32>, %arg1: memref<2560xi32>, %arg2: memref<40x64xf32>) kernel attributes {known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 2, 5, 1>} {
      %c64 = arith.constant 64 : index
      %cst = arith.constant 0.000000e+00 : f32
      %c0_i32 = arith.constant 0 : i32
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %0 = arith.muli %block_id_y, %c8 : index
      %1 = arith.addi %0, %thread_id_y : index
      %2 = arith.muli %block_id_x, %c32 : index
      %3 = arith.addi %2, %thread_id_x : index
      %4 = memref.load %arg0[%1, %3] : memref<40x64xf32>
      %5 = arith.muli %1, %c64 : index
      %6 = arith.addi %5, %3 : index
      %7 = memref.load %arg1[%6] : memref<2560xi32>
      %8 = arith.cmpi sge, %7, %c0_i32 : i32
      %9 = arith.select %8, %cst, %4 : f32
      memref.store %9, %arg2[%1, %3] : memref<40x64xf32>
      gpu.return
    }
    gpu.func @program_kernel_5(%arg0: memref<2560xi32>, %arg1: memref<40x64xf32>) kernel attributes {known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 2, 5, 1>} {
      %c64 = arith.constant 64 : index
      %cst = arith.constant 0.000000e+00 : f32
      %cst_0 = arith.constant 1.000000e+00 : f32
      %c0_i32 = arith.constant 0 : i32
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %0 = arith.muli %block_id_y, %c8 : index
      %1 = arith.addi %0, %thread_id_y : index
      %2 = arith.muli %block_id_x, %c32 : index
      %3 = arith.addi %2, %thread_id_x : index
      %4 = arith.muli %1, %c64 : index
      %5 = arith.addi %4, %3 : index
      %6 = memref.load %arg0[%5] : memref<2560xi32>
      %7 = arith.cmpi sge, %6, %c0_i32 : i32
      %8 = arith.select %7, %cst, %cst_0 : f32
      memref.store %8, %arg1[%1, %3] : memref<40x64xf32>
      gpu.return
    }
    gpu.func @program_kernel_6(%arg0: memref<2560xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 10, 1, 1>} {
      %c0_i32 = arith.constant 0 : i32
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      memref.store %c0_i32, %arg0[%1] : memref<2560xi32>
      gpu.return
    }
    gpu.func @program_kernel_7(%arg0: memref<4480x2xi64>, %arg1: memref<4480xi32>, %arg2: memref<2560xi32>, %arg3: memref<4480xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>} {
      %c64 = arith.constant 64 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c1_i32 = arith.constant 1 : i32
      %c-1 = arith.constant -1 : index
      %c40_i64 = arith.constant 40 : i64
      %c64_i64 = arith.constant 64 : i64
      %c4480 = arith.constant 4480 : index
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = arith.cmpi slt, %1, %c4480 : index
      scf.if %2 {
        %3 = memref.load %arg0[%1, %c0] : memref<4480x2xi64>
        %4 = memref.load %arg0[%1, %c1] : memref<4480x2xi64>
        %5 = arith.cmpi ult, %3, %c40_i64 : i64
        %6 = arith.cmpi ult, %4, %c64_i64 : i64
        %7 = arith.andi %5, %6 : i1
        %8 = arith.index_cast %3 : i64 to index
        %9 = arith.select %7, %8, %c0 : index
        %10 = arith.index_cast %4 : i64 to index
        %11 = arith.select %7, %10, %c0 : index
        %12 = arith.muli %9, %c64 : index
        %13 = arith.addi %12, %11 : index
        cf.assert %7, "an index is out of bounds"
        %14 = arith.select %7, %13, %c-1 : index
        %15 = arith.index_cast %14 : index to i32
        memref.store %15, %arg1[%1] : memref<4480xi32>
        scf.if %7 {
          %16 = memref.atomic_rmw addi %c1_i32, %arg2[%13] : (i32, memref<2560xi32>) -> i32
          memref.store %16, %arg3[%1] : memref<4480xi32>
        }
      }
      gpu.return
    }
    gpu.func @program_kernel_8(%arg0: memref<4480xi32>, %arg1: memref<2560xi32>, %arg2: memref<4480xi32>, %arg3: memref<4480xi64>, %arg4: memref<4480xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0_i32 = arith.constant 0 : i32
      %c1024 = arith.constant 1024 : index
      %c32_i64 = arith.constant 32 : i64
      %c4480 = arith.constant 4480 : index
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = arith.cmpi slt, %1, %c4480 : index
      scf.if %2 {
        %3 = memref.load %arg0[%1] : memref<4480xi32>
        %4 = arith.index_cast %3 : i32 to index
        %5 = arith.cmpi sge, %4, %c0 : index
        scf.if %5 {
          %6 = arith.cmpi eq, %4, %c0 : index
          %7 = arith.subi %4, %c1 : index
          %8 = arith.select %6, %c0, %7 : index
          %9 = memref.load %arg1[%8] : memref<2560xi32>
          %10 = arith.select %6, %c0_i32, %9 : i32
          %11 = memref.load %arg1[%4] : memref<2560xi32>
          %12 = arith.index_cast %10 : i32 to index
          %13 = arith.index_cast %11 : i32 to index
          %14 = memref.load %arg2[%1] : memref<4480xi32>
          %15 = arith.index_cast %14 : i32 to index
          %16 = arith.addi %12, %15 : index
          %17 = arith.index_cast %4 : index to i64
          %18 = arith.shli %17, %c32_i64 : i64
          %19 = arith.index_cast %1 : index to i64
          %20 = arith.ori %18, %19 : i64
          memref.store %20, %arg3[%16] : memref<4480xi64>
          %21 = arith.subi %13, %12 : index
          %22 = arith.cmpi ugt, %21, %c1024 : index
          %23 = arith.cmpi eq, %15, %c0 : index
          %24 = arith.andi %22, %23 : i1
          scf.if %24 {
            %25 = scf.for %arg5 = %c0 to %c4480 step %c1 iter_args(%arg6 = %12) -> (index) {
              %26 = memref.load %arg0[%arg5] : memref<4480xi32>
              %27 = arith.cmpi eq, %26, %3 : i32
              %28 = scf.if %27 -> (index) {
                %29 = arith.index_cast %arg5 : index to i32
                memref.store %29, %arg4[%arg6] : memref<4480xi32>
                %30 = arith.addi %arg6, %c1 : index
                scf.yield %30 : index
              } else {
                scf.yield %arg6 : index
              }
              scf.yield %28 : index
            }
          }
        }
      }
      gpu.return
    }
    gpu.func @program_kernel_9(%arg0: memref<2560xi32>, %arg1: memref<4480xi64>, %arg2: memref<4480xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0_i32 = arith.constant 0 : i32
      %c1024 = arith.constant 1024 : index
      %c32_i64 = arith.constant 32 : i64
      %c4480 = arith.constant 4480 : index
      %c2559 = arith.constant 2559 : index
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = arith.cmpi slt, %1, %c4480 : index
      scf.if %2 {
        %3 = memref.load %arg0[%c2559] : memref<2560xi32>
        %4 = arith.index_cast %3 : i32 to index
        %5 = arith.cmpi ult, %1, %4 : index
        scf.if %5 {
          %6 = memref.load %arg1[%1] : memref<4480xi64>
          %7 = arith.shrui %6, %c32_i64 : i64
          %8 = arith.index_cast %7 : i64 to index
          %9 = arith.cmpi eq, %8, %c0 : index
          %10 = arith.subi %8, %c1 : index
          %11 = arith.select %9, %c0, %10 : index
          %12 = memref.load %arg0[%11] : memref<2560xi32>
          %13 = arith.select %9, %c0_i32, %12 : i32
          %14 = memref.load %arg0[%8] : memref<2560xi32>
          %15 = arith.index_cast %13 : i32 to index
          %16 = arith.index_cast %14 : i32 to index
          %17 = arith.subi %16, %15 : index
          %18 = arith.cmpi ule, %17, %c1024 : index
          scf.if %18 {
            %19 = scf.for %arg3 = %15 to %16 step %c1 iter_args(%arg4 = %15) -> (index) {
              %21 = memref.load %arg1[%arg3] : memref<4480xi64>
              %22 = arith.cmpi slt, %21, %6 : i64
              %23 = arith.addi %arg4, %c1 : index
              %24 = arith.select %22, %23, %arg4 : index
              scf.yield %24 : index
            }
            %20 = arith.trunci %6 : i64 to i32
            memref.store %20, %arg2[%19] : memref<4480xi32>
          }
        }
      }
      gpu.return
    }
    gpu.func @program_kernel_10(%arg0: memref<2560xi32>, %arg1: memref<40x64xf32>, %arg2: memref<4480xi32>, %arg3: memref<4480xf32>) kernel attributes {known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 2, 5, 1>} {
      %c64 = arith.constant 64 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0_i32 = arith.constant 0 : i32
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %0 = arith.muli %block_id_y, %c8 : index
      %1 = arith.addi %0, %thread_id_y : index
      %2 = arith.muli %block_id_x, %c32 : index
      %3 = arith.addi %2, %thread_id_x : index
      %4 = arith.muli %1, %c64 : index
      %5 = arith.addi %4, %3 : index
      %6 = arith.cmpi eq, %5, %c0 : index
      %7 = arith.subi %5, %c1 : index
      %8 = arith.select %6, %c0, %7 : index
      %9 = memref.load %arg0[%8] : memref<2560xi32>
      %10 = arith.select %6, %c0_i32, %9 : i32
      %11 = memref.load %arg0[%5] : memref<2560xi32>
      %12 = arith.index_cast %10 : i32 to index
      %13 = arith.index_cast %11 : i32 to index
      %14 = arith.subi %13, %12 : index
      %15 = arith.minui %14, %c1 : index
      %subview = memref.subview %arg1[%1, %3] [%15, 1] [1, 1] : memref<40x64xf32> to memref<?xf32, strided<[64], offset: ?>>
      %expand_shape = memref.expand_shape %subview [[0, 1]] output_shape [%15, 1] : memref<?xf32, strided<[64], offset: ?>> into memref<?x1xf32, strided<[64, 64], offset: ?>>
      scf.for %arg4 = %c0 to %15 step %c1 {
        %16 = memref.load %expand_shape[%c0, %c0] : memref<?x1xf32, strided<[64, 64], offset: ?>>
        %17 = scf.for %arg5 = %12 to %13 step %c1 iter_args(%arg6 = %16) -> (f32) {
          %18 = memref.load %arg2[%arg5] : memref<4480xi32>
          %19 = arith.index_cast %18 : i32 to index
          %20 = memref.load %arg3[%19] : memref<4480xf32>
          %21 = arith.addf %20, %arg6 : f32
          scf.yield %21 : f32
        }
        memref.store %17, %expand_shape[%c0, %c0] : memref<?x1xf32, strided<[64, 64], offset: ?>>
      }
      gpu.return
    }
    gpu.func @program_kernel_11(%arg0: memref<4480x2xi64>, %arg1: memref<2560xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 18, 1, 1>} {
      %c64 = arith.constant 64 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c1_i32 = arith.constant 1 : i32
      %c40_i64 = arith.constant 40 : i64
      %c64_i64 = arith.constant 64 : i64
      %c4480 = arith.constant 4480 : index
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = arith.cmpi slt, %1, %c4480 : index
      scf.if %2 {
        %3 = memref.load %arg0[%1, %c0] : memref<4480x2xi64>
        %4 = memref.load %arg0[%1, %c1] : memref<4480x2xi64>
        %5 = arith.cmpi ult, %3, %c40_i64 : i64
        %6 = arith.cmpi ult, %4, %c64_i64 : i64
        %7 = arith.andi %5, %6 : i1
        %8 = arith.index_cast %3 : i64 to index
        %9 = arith.select %7, %8, %c0 : index
        %10 = arith.index_cast %4 : i64 to index
        %11 = arith.select %7, %10, %c0 : index
        %12 = arith.muli %9, %c64 : index
        %13 = arith.addi %12, %11 : index
        cf.assert %7, "an index is out of bounds"
        scf.if %7 {
          %14 = memref.atomic_rmw addi %c1_i32, %arg1[%13] : (i32, memref<2560xi32>) -> i32
        }
      }
      gpu.return
    }
    gpu.func @program_kernel_12(%arg0: memref<2560xi32>, %arg1: memref<40x64xf32>) kernel attributes {known_block_size = array<i32: 32, 8, 1>, known_grid_size = array<i32: 2, 5, 1>} {
      %c64 = arith.constant 64 : index
      %cst = arith.constant 1.000000e+00 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0_i32 = arith.constant 0 : i32
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %block_id_x = gpu.block_id x
      %block_id_y = gpu.block_id y
      %thread_id_x = gpu.thread_id x
      %thread_id_y = gpu.thread_id y
      %0 = arith.muli %block_id_y, %c8 : index
      %1 = arith.addi %0, %thread_id_y : index
      %2 = arith.muli %block_id_x, %c32 : index
      %3 = arith.addi %2, %thread_id_x : index
      %4 = arith.muli %1, %c64 : index
      %5 = arith.addi %4, %3 : index
      %6 = arith.cmpi eq, %5, %c0 : index
      %7 = arith.subi %5, %c1 : index
      %8 = arith.select %6, %c0, %7 : index
      %9 = memref.load %arg0[%8] : memref<2560xi32>
      %10 = arith.select %6, %c0_i32, %9 : i32
      %11 = memref.load %arg0[%5] : memref<2560xi32>
      %12 = arith.index_cast %10 : i32 to index
      %13 = arith.index_cast %11 : i32 to index
      %14 = arith.subi %13, %12 : index
      %15 = arith.minui %14, %c1 : index
      %subview = memref.subview %arg1[%1, %3] [%15, 1] [1, 1] : memref<40x64xf32> to memref<?xf32, strided<[64], offset: ?>>
      %expand_shape = memref.expand_shape %subview [[0, 1]] output_shape [%15, 1] : memref<?xf32, strided<[64], offset: ?>> into memref<?x1xf32, strided<[64, 64], offset: ?>>
      scf.for %arg2 = %c0 to %15 step %c1 {
        %16 = memref.load %expand_shape[%c0, %c0] : memref<?x1xf32, strided<[64, 64], offset: ?>>
        %17 = scf.for %arg3 = %12 to %13 step %c1 iter_args(%arg4 = %16) -> (f32) {
          %18 = arith.addf %arg4, %cst : f32
          scf.yield %18 : f32
        }
        memref.store %17, %expand_shape[%c0, %c0] : memref<?x1xf32, strided<[64, 64], offset: ?>>
      }
      gpu.return
    }
    gpu.func @program_kernel_13(%arg0: memref<2560xf32>, %arg1: memref<2560xf32>, %arg2: memref<2560xf32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 10, 1, 1>} {
      %c256 = arith.constant 256 : index
      %block_id_x = gpu.block_id x
      %thread_id_x = gpu.thread_id x
      %0 = arith.muli %block_id_x, %c256 : index
      %1 = arith.addi %0, %thread_id_x : index
      %2 = memref.load %arg0[%1] : memref<2560xf32>
      %3 = memref.load %arg1[%1] : memref<2560xf32>
      %4 = arith.divf %2, %3 : f32
      memref.store %4, %arg2[%1] : memref<2560xf32>
      gpu.return
    }
  }
  gpu.module @program_kernel_gpu attributes {aotc.runs_on = "gpu"} {
    gpu.func @program_kernel(%arg0: memref<2560xi32>, %arg1: memref<2560xi32>) workgroup(%arg2 : memref<2x32xi32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 1024, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c64 = arith.constant 64 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %c2560 = arith.constant 2560 : index
      %c2559 = arith.constant 2559 : index
      %c2 = arith.constant 2 : index
      %c9 = arith.constant 9 : index
      %c32 = arith.constant 32 : index
      %c8 = arith.constant 8 : index
      %c18 = arith.constant 18 : index
      %c10 = arith.constant 10 : index
      %c5 = arith.constant 5 : index
      %c128 = arith.constant 128 : index
      %c96 = arith.constant 96 : index
      %c32_i32 = arith.constant 32 : i32
      %c2_i32 = arith.constant 2 : i32
      %c4_i32 = arith.constant 4 : i32
      %c4 = arith.constant 4 : index
      %c8_i32 = arith.constant 8 : i32
      %c16_i32 = arith.constant 16 : i32
      %c16 = arith.constant 16 : index
      %c31_i32 = arith.constant 31 : i32
      %c3 = arith.constant 3 : index
      %c6 = arith.constant 6 : index
      %c7 = arith.constant 7 : index
      %c11 = arith.constant 11 : index
      %c12 = arith.constant 12 : index
      %c13 = arith.constant 13 : index
      %c14 = arith.constant 14 : index
      %c15 = arith.constant 15 : index
      %c17 = arith.constant 17 : index
      %c19 = arith.constant 19 : index
      %c20 = arith.constant 20 : index
      %c21 = arith.constant 21 : index
      %c22 = arith.constant 22 : index
      %c23 = arith.constant 23 : index
      %c24 = arith.constant 24 : index
      %c25 = arith.constant 25 : index
      %c26 = arith.constant 26 : index
      %c27 = arith.constant 27 : index
      %c28 = arith.constant 28 : index
      %c29 = arith.constant 29 : index
      %c30 = arith.constant 30 : index
      %c31 = arith.constant 31 : index
      %thread_id_x = gpu.thread_id x
      %0 = arith.remui %thread_id_x, %c32 : index
      %1 = arith.divui %thread_id_x, %c32 : index
      %2 = arith.cmpi eq, %0, %c0 : index
      %3 = arith.muli %1, %c128 : index
      %4 = arith.addi %3, %0 : index
      %5 = arith.addi %4, %c32 : index
      %6 = arith.addi %4, %c64 : index
      %7 = arith.addi %4, %c96 : index
      %8 = arith.cmpi ult, %4, %c2560 : index
      %9 = arith.cmpi ult, %5, %c2560 : index
      %10 = arith.cmpi ult, %6, %c2560 : index
      %11 = arith.cmpi ult, %7, %c2560 : index
      %12 = arith.select %8, %4, %c2559 : index
      %13 = arith.select %9, %5, %c2559 : index
      %14 = arith.select %10, %6, %c2559 : index
      %15 = arith.select %11, %7, %c2559 : index
      %16 = memref.load %arg0[%12] : memref<2560xi32>
      %17 = memref.load %arg0[%13] : memref<2560xi32>
      %18 = memref.load %arg0[%14] : memref<2560xi32>
      %19 = memref.load %arg0[%15] : memref<2560xi32>
      %20 = arith.select %8, %16, %c0_i32 : i32
      %21 = arith.select %9, %17, %c0_i32 : i32
      %22 = arith.select %10, %18, %c0_i32 : i32
      %23 = arith.select %11, %19, %c0_i32 : i32
      %shuffleResult, %valid = gpu.shuffle up %20, %c1_i32, %c32_i32 : i32
      %24 = arith.cmpi ult, %0, %c1 : index
      %25 = arith.addi %shuffleResult, %20 : i32
      %26 = arith.select %24, %20, %25 : i32
      %shuffleResult_0, %valid_1 = gpu.shuffle up %26, %c2_i32, %c32_i32 : i32
      %27 = arith.cmpi ult, %0, %c2 : index
      %28 = arith.addi %shuffleResult_0, %26 : i32
      %29 = arith.select %27, %26, %28 : i32
      %shuffleResult_2, %valid_3 = gpu.shuffle up %29, %c4_i32, %c32_i32 : i32
      %30 = arith.cmpi ult, %0, %c4 : index
      %31 = arith.addi %shuffleResult_2, %29 : i32
      %32 = arith.select %30, %29, %31 : i32
      %shuffleResult_4, %valid_5 = gpu.shuffle up %32, %c8_i32, %c32_i32 : i32
      %33 = arith.cmpi ult, %0, %c8 : index
      %34 = arith.addi %shuffleResult_4, %32 : i32
      %35 = arith.select %33, %32, %34 : i32
      %shuffleResult_6, %valid_7 = gpu.shuffle up %35, %c16_i32, %c32_i32 : i32
      %36 = arith.cmpi ult, %0, %c16 : index
      %37 = arith.addi %shuffleResult_6, %35 : i32
      %38 = arith.select %36, %35, %37 : i32
      %shuffleResult_8, %valid_9 = gpu.shuffle up %21, %c1_i32, %c32_i32 : i32
      %39 = arith.addi %shuffleResult_8, %21 : i32
      %40 = arith.select %24, %21, %39 : i32
      %shuffleResult_10, %valid_11 = gpu.shuffle up %40, %c2_i32, %c32_i32 : i32
      %41 = arith.addi %shuffleResult_10, %40 : i32
      %42 = arith.select %27, %40, %41 : i32
      %shuffleResult_12, %valid_13 = gpu.shuffle up %42, %c4_i32, %c32_i32 : i32
      %43 = arith.addi %shuffleResult_12, %42 : i32
      %44 = arith.select %30, %42, %43 : i32
      %shuffleResult_14, %valid_15 = gpu.shuffle up %44, %c8_i32, %c32_i32 : i32
      %45 = arith.addi %shuffleResult_14, %44 : i32
      %46 = arith.select %33, %44, %45 : i32
      %shuffleResult_16, %valid_17 = gpu.shuffle up %46, %c16_i32, %c32_i32 : i32
      %47 = arith.addi %shuffleResult_16, %46 : i32
      %48 = arith.select %36, %46, %47 : i32
      %shuffleResult_18, %valid_19 = gpu.shuffle up %22, %c1_i32, %c32_i32 : i32
      %49 = arith.addi %shuffleResult_18, %22 : i32
      %50 = arith.select %24, %22, %49 : i32
      %shuffleResult_20, %valid_21 = gpu.shuffle up %50, %c2_i32, %c32_i32 : i32
      %51 = arith.addi %shuffleResult_20, %50 : i32
      %52 = arith.select %27, %50, %51 : i32
      %shuffleResult_22, %valid_23 = gpu.shuffle up %52, %c4_i32, %c32_i32 : i32
      %53 = arith.addi %shuffleResult_22, %52 : i32
      %54 = arith.select %30, %52, %53 : i32
      %shuffleResult_24, %valid_25 = gpu.shuffle up %54, %c8_i32, %c32_i32 : i32
      %55 = arith.addi %shuffleResult_24, %54 : i32
      %56 = arith.select %33, %54, %55 : i32
      %shuffleResult_26, %valid_27 = gpu.shuffle up %56, %c16_i32, %c32_i32 : i32
      %57 = arith.addi %shuffleResult_26, %56 : i32
      %58 = arith.select %36, %56, %57 : i32
      %shuffleResult_28, %valid_29 = gpu.shuffle up %23, %c1_i32, %c32_i32 : i32
      %59 = arith.addi %shuffleResult_28, %23 : i32
      %60 = arith.select %24, %23, %59 : i32
      %shuffleResult_30, %valid_31 = gpu.shuffle up %60, %c2_i32, %c32_i32 : i32
      %61 = arith.addi %shuffleResult_30, %60 : i32
      %62 = arith.select %27, %60, %61 : i32
      %shuffleResult_32, %valid_33 = gpu.shuffle up %62, %c4_i32, %c32_i32 : i32
      %63 = arith.addi %shuffleResult_32, %62 : i32
      %64 = arith.select %30, %62, %63 : i32
      %shuffleResult_34, %valid_35 = gpu.shuffle up %64, %c8_i32, %c32_i32 : i32
      %65 = arith.addi %shuffleResult_34, %64 : i32
      %66 = arith.select %33, %64, %65 : i32
      %shuffleResult_36, %valid_37 = gpu.shuffle up %66, %c16_i32, %c32_i32 : i32
      %67 = arith.addi %shuffleResult_36, %66 : i32
      %68 = arith.select %36, %66, %67 : i32
      %shuffleResult_38, %valid_39 = gpu.shuffle idx %38, %c31_i32, %c32_i32 : i32
      %69 = arith.addi %shuffleResult_38, %48 : i32
      %shuffleResult_40, %valid_41 = gpu.shuffle idx %69, %c31_i32, %c32_i32 : i32
      %70 = arith.addi %shuffleResult_40, %58 : i32
      %shuffleResult_42, %valid_43 = gpu.shuffle idx %70, %c31_i32, %c32_i32 : i32
      %71 = arith.addi %shuffleResult_42, %68 : i32
      %shuffleResult_44, %valid_45 = gpu.shuffle idx %71, %c31_i32, %c32_i32 : i32
      scf.if %2 {
        memref.store %shuffleResult_44, %arg2[%c0, %1] : memref<2x32xi32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %72 = memref.load %arg2[%c0, %c0] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %73 = arith.cmpi eq, %1, %c1 : index
      %74 = arith.select %73, %72, %c0_i32 : i32
      %75 = memref.load %arg2[%c0, %c1] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %76 = arith.addi %72, %75 : i32
      %77 = arith.cmpi eq, %1, %c2 : index
      %78 = arith.select %77, %76, %74 : i32
      %79 = memref.load %arg2[%c0, %c2] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %80 = arith.addi %76, %79 : i32
      %81 = arith.cmpi eq, %1, %c3 : index
      %82 = arith.select %81, %80, %78 : i32
      %83 = memref.load %arg2[%c0, %c3] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %84 = arith.addi %80, %83 : i32
      %85 = arith.cmpi eq, %1, %c4 : index
      %86 = arith.select %85, %84, %82 : i32
      %87 = memref.load %arg2[%c0, %c4] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %88 = arith.addi %84, %87 : i32
      %89 = arith.cmpi eq, %1, %c5 : index
      %90 = arith.select %89, %88, %86 : i32
      %91 = memref.load %arg2[%c0, %c5] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %92 = arith.addi %88, %91 : i32
      %93 = arith.cmpi eq, %1, %c6 : index
      %94 = arith.select %93, %92, %90 : i32
      %95 = memref.load %arg2[%c0, %c6] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %96 = arith.addi %92, %95 : i32
      %97 = arith.cmpi eq, %1, %c7 : index
      %98 = arith.select %97, %96, %94 : i32
      %99 = memref.load %arg2[%c0, %c7] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %100 = arith.addi %96, %99 : i32
      %101 = arith.cmpi eq, %1, %c8 : index
      %102 = arith.select %101, %100, %98 : i32
      %103 = memref.load %arg2[%c0, %c8] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %104 = arith.addi %100, %103 : i32
      %105 = arith.cmpi eq, %1, %c9 : index
      %106 = arith.select %105, %104, %102 : i32
      %107 = memref.load %arg2[%c0, %c9] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %108 = arith.addi %104, %107 : i32
      %109 = arith.cmpi eq, %1, %c10 : index
      %110 = arith.select %109, %108, %106 : i32
      %111 = memref.load %arg2[%c0, %c10] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %112 = arith.addi %108, %111 : i32
      %113 = arith.cmpi eq, %1, %c11 : index
      %114 = arith.select %113, %112, %110 : i32
      %115 = memref.load %arg2[%c0, %c11] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %116 = arith.addi %112, %115 : i32
      %117 = arith.cmpi eq, %1, %c12 : index
      %118 = arith.select %117, %116, %114 : i32
      %119 = memref.load %arg2[%c0, %c12] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %120 = arith.addi %116, %119 : i32
      %121 = arith.cmpi eq, %1, %c13 : index
      %122 = arith.select %121, %120, %118 : i32
      %123 = memref.load %arg2[%c0, %c13] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %124 = arith.addi %120, %123 : i32
      %125 = arith.cmpi eq, %1, %c14 : index
      %126 = arith.select %125, %124, %122 : i32
      %127 = memref.load %arg2[%c0, %c14] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %128 = arith.addi %124, %127 : i32
      %129 = arith.cmpi eq, %1, %c15 : index
      %130 = arith.select %129, %128, %126 : i32
      %131 = memref.load %arg2[%c0, %c15] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %132 = arith.addi %128, %131 : i32
      %133 = arith.cmpi eq, %1, %c16 : index
      %134 = arith.select %133, %132, %130 : i32
      %135 = memref.load %arg2[%c0, %c16] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %136 = arith.addi %132, %135 : i32
      %137 = arith.cmpi eq, %1, %c17 : index
      %138 = arith.select %137, %136, %134 : i32
      %139 = memref.load %arg2[%c0, %c17] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %140 = arith.addi %136, %139 : i32
      %141 = arith.cmpi eq, %1, %c18 : index
      %142 = arith.select %141, %140, %138 : i32
      %143 = memref.load %arg2[%c0, %c18] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %144 = arith.addi %140, %143 : i32
      %145 = arith.cmpi eq, %1, %c19 : index
      %146 = arith.select %145, %144, %142 : i32
      %147 = memref.load %arg2[%c0, %c19] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %148 = arith.addi %144, %147 : i32
      %149 = arith.cmpi eq, %1, %c20 : index
      %150 = arith.select %149, %148, %146 : i32
      %151 = memref.load %arg2[%c0, %c20] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %152 = arith.addi %148, %151 : i32
      %153 = arith.cmpi eq, %1, %c21 : index
      %154 = arith.select %153, %152, %150 : i32
      %155 = memref.load %arg2[%c0, %c21] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %156 = arith.addi %152, %155 : i32
      %157 = arith.cmpi eq, %1, %c22 : index
      %158 = arith.select %157, %156, %154 : i32
      %159 = memref.load %arg2[%c0, %c22] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %160 = arith.addi %156, %159 : i32
      %161 = arith.cmpi eq, %1, %c23 : index
      %162 = arith.select %161, %160, %158 : i32
      %163 = memref.load %arg2[%c0, %c23] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %164 = arith.addi %160, %163 : i32
      %165 = arith.cmpi eq, %1, %c24 : index
      %166 = arith.select %165, %164, %162 : i32
      %167 = memref.load %arg2[%c0, %c24] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %168 = arith.addi %164, %167 : i32
      %169 = arith.cmpi eq, %1, %c25 : index
      %170 = arith.select %169, %168, %166 : i32
      %171 = memref.load %arg2[%c0, %c25] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %172 = arith.addi %168, %171 : i32
      %173 = arith.cmpi eq, %1, %c26 : index
      %174 = arith.select %173, %172, %170 : i32
      %175 = memref.load %arg2[%c0, %c26] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %176 = arith.addi %172, %175 : i32
      %177 = arith.cmpi eq, %1, %c27 : index
      %178 = arith.select %177, %176, %174 : i32
      %179 = memref.load %arg2[%c0, %c27] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %180 = arith.addi %176, %179 : i32
      %181 = arith.cmpi eq, %1, %c28 : index
      %182 = arith.select %181, %180, %178 : i32
      %183 = memref.load %arg2[%c0, %c28] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %184 = arith.addi %180, %183 : i32
      %185 = arith.cmpi eq, %1, %c29 : index
      %186 = arith.select %185, %184, %182 : i32
      %187 = memref.load %arg2[%c0, %c29] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %188 = arith.addi %184, %187 : i32
      %189 = arith.cmpi eq, %1, %c30 : index
      %190 = arith.select %189, %188, %186 : i32
      %191 = memref.load %arg2[%c0, %c30] : memref<2x32xi32, #gpu.address_space<workgroup>>
      %192 = arith.addi %188, %191 : i32
      %193 = arith.cmpi eq, %1, %c31 : index
      %194 = arith.select %193, %192, %190 : i32
      %195 = arith.addi %194, %38 : i32
      scf.if %8 {
        memref.store %195, %arg1[%12] : memref<2560xi32>
      }
      %196 = arith.addi %194, %69 : i32
      scf.if %9 {
        memref.store %196, %arg1[%13] : memref<2560xi32>
      }
      %197 = arith.addi %194, %70 : i32
      scf.if %10 {
        memref.store %197, %arg1[%14] : memref<2560xi32>
      }
      %198 = arith.addi %194, %71 : i32
      scf.if %11 {
        memref.store %198, %arg1[%15] : memref<2560xi32>
      }
      gpu.return
    }
  }
  gpu.module @program_kernels_cpu attributes {aotc.runs_on = "cpu"} {
    gpu.func @program_kernel(%arg0: memref<2560xi32>, %arg1: memref<2560xi32>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, known_grid_size = array<i32: 1, 1, 1>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c0_i32 = arith.constant 0 : i32
      %c2560 = arith.constant 2560 : index
      %thread_id_x = gpu.thread_id x
      %0 = arith.cmpi slt, %thread_id_x, %c1 : index
      scf.if %0 {
        %1 = scf.for %arg2 = %c0 to %c2560 step %c1 iter_args(%arg3 = %c0_i32) -> (i32) {
          %2 = memref.load %arg0[%arg2] : memref<2560xi32>
          %3 = arith.addi %arg3, %2 : i32
          memref.store %3, %arg1[%arg2] : memref<2560xi32>
          scf.yield %3 : i32
        }
      }
      gpu.return
    }
  }
  func.func private @aotc_compute_capability() -> i32
}


#!/usr/bin/env python3
"""Runs the gates of tools/check-cuda on what CUDA's tools print: each must find its fault, and let a sound kernel pass."""

import importlib.machinery
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
PATH = os.path.join(os.environ["TWILL_SOURCE_DIR"], "tools", "check-cuda")
LOADER = importlib.machinery.SourceFileLoader("check_cuda", PATH)
check_cuda = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_cuda", LOADER))
LOADER.exec_module(check_cuda)

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN5twill5soundEPf' for 'sm_80'
ptxas info    : Function properties for _ZN5twill5soundEPf
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 16 bytes cumulative stack size, 360 bytes cmem[0]
ptxas info    : Compiling entry function '_ZN5twill5spillEPf' for 'sm_80'
ptxas info    : Function properties for _ZN5twill5spillEPf
    64 bytes stack frame, 48 bytes spill stores, 72 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 360 bytes cmem[0]
ptxas info    : Compiling entry function '_ZN5twill5emptyEPf' for 'sm_80'
ptxas info    : Function properties for _ZN5twill5emptyEPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
USAGE = """
Fatbin elf code:
================
arch = sm_80
code version = [1,7]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function _ZN5twill5soundEPf:
  REG:32 STACK:16 SHARED:1024 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _ZN5twill5spillEPf:
  REG:255 STACK:64 SHARED:0 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _ZN5twill5emptyEPf:
  REG:8 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:360 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
SASS = """
	code for sm_80
		Function : _ZN5twill5soundEPf
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
        /*0000*/                   MOV R1, c[0x0][0x28] ;                     /* 0x00000a0000017a02 */
        /*0040*/                   STS [R4], R2 ;                             /* 0x0000000204007388 */
        /*0050*/              @!P0 STG.E [R2.64], R5 ;                        /* 0x0000000502007986 */
		Function : _ZN5twill5spillEPf
        /*0000*/                   STL [R1], R2 ;                             /* 0x0000000201007387 */
        /*0010*/                   RED.E.ADD.STRONG.GPU [R2.64], R5 ;         /* 0x000000050200798e */
		Function : _ZN5twill5emptyEPf
        /*0000*/                   STL [R1], R2 ;                             /* 0x0000000201007387 */
        /*0010*/                   EXIT ;                                     /* 0x000000000000794d */
"""


class Gates(unittest.TestCase):
    def setUp(self):
        self.kernels = {k.name: k for k in check_cuda.kernels_of(LOG, USAGE, SASS)}

    def faults(self, name, **changed):
        return " | ".join(check_cuda.faults_of(self.kernels[name]._replace(**changed)))

    def test_a_sound_kernel_passes_with_a_stack_but_no_spills(self):
        self.assertEqual(self.kernels["_ZN5twill5soundEPf"], check_cuda.Kernel("_ZN5twill5soundEPf", 80, 32, 1024, 0, 1))
        self.assertEqual(self.faults("_ZN5twill5soundEPf"), "")

    def test_spilled_registers_are_a_fault(self):
        self.assertIn("registers must not spill, but 120 bytes do", self.faults("_ZN5twill5spillEPf"))

    def test_a_kernel_that_stores_nothing_is_a_fault(self):
        self.assertIn("stores nothing", self.faults("_ZN5twill5emptyEPf"))
        self.assertNotIn("stores nothing", self.faults("_ZN5twill5spillEPf"))

    def test_the_store_of_kokkos_does_not_count_as_a_team_s_own(self):
        team = self.kernels["_ZN5twill5soundEPf"]._replace(name="_ZN6Kokkos10TeamPolicyI5twillE")
        self.assertIn("stores nothing", " ".join(check_cuda.faults_of(team)))
        self.assertEqual(check_cuda.faults_of(team._replace(stores=2)), [])

    def test_too_many_registers_or_bytes_of_shared_memory_are_a_fault(self):
        self.assertIn("leave room for 8", self.faults("_ZN5twill5soundEPf", registers=255))
        self.assertEqual(self.faults("_ZN5twill5soundEPf", registers=128), "")
        self.assertIn("leave room for 12", self.faults("_ZN5twill5soundEPf", registers=128, shared=32 * 1024))

    def test_kernels_of_others_are_not_judged(self):
        self.assertEqual(check_cuda.kernels_of(LOG.replace("5twill", "6Kokkos"), USAGE, SASS), [])

    def test_a_kernel_without_machine_code_is_a_fault(self):
        kernels = check_cuda.kernels_of(LOG, "", "")
        self.assertEqual(check_cuda.faults_of(kernels[0]), ["its machine code was not found"])

    def test_a_linked_program_needs_no_driver_and_holds_every_architecture(self):
        needed = " 0x0000000000000001 (NEEDED)             Shared library: [libstdc++.so.6]\n"
        both = USAGE + USAGE.replace("sm_80", "sm_90")
        self.assertEqual(check_cuda.faults_of_program(needed, both, [80, 90]), [])
        self.assertIn("needs libcuda.so.1", check_cuda.faults_of_program(needed.replace("libstdc++.so.6", "libcuda.so.1"), both, [80])[0])
        self.assertIn("holds 3 for sm_80, 0 for sm_86", check_cuda.faults_of_program(needed, both, [80, 86])[0])
        self.assertIn("holds 0 for sm_80", check_cuda.faults_of_program(needed, both.replace("5twill", "6Kokkos"), [80])[0])


if __name__ == "__main__":
    unittest.main()

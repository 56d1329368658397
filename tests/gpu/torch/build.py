"""Builds the class; prints its path or the reason why it cannot be built."""
import fragsim_torch

try:
    print(fragsim_torch.build())
except fragsim_torch.Unavailable as reason:
    print(reason)

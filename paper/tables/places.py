"""places.py: where the programs of tables/ and gpu/ find what they read and write."""
import os

PAPER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(PAPER)
DATA = os.path.join(PAPER, "data")
PAGES = os.path.join(PAPER, "pages")

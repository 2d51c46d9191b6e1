"""Laws that the layouts of any library must meet, by enumeration: a suite for layouts that this library does not know.

Main statements: a law is stated on values alone, so it holds whatever the other library calls a layout. A refusal is
never a counterexample: it must be one of the exceptions that the library refuses with, any other one counts as a crash.
"""

from layoutalg.testing.laws.library import Library
from layoutalg.testing.laws.statements import LAWS, Law
from layoutalg.testing.laws.suite import Counterexample, LawSuite, counterexample, laws_of

__all__ = ["LAWS", "Counterexample", "Law", "LawSuite", "Library", "counterexample", "laws_of"]

"""Foreign text for messages: printable, encodable, bounded."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.document import malformed
from layoutalg.ground.text import escaped


@settings(max_examples=300, deadline=None)
@given(st.text(), st.none() | st.integers(5, 40))
def test_escaped_text_is_printable_and_encodes(text, width):
    found = escaped(text, width)
    assert found.isprintable()
    found.encode()
    assert width is None or len(found) <= width
    if text.isprintable() and (width is None or len(text) <= width):
        assert found == text


def test_errors_of_documents_show_no_more_than_they_can():
    """What is shown of ten million numbers is not first written whole, which takes far longer."""
    given = [0] * 10**7
    began = time.process_time()
    whole = repr(given)
    needed = time.process_time() - began
    began = time.process_time()
    error = malformed("/a", "must be a string", given)
    assert time.process_time() - began < needed / 3
    assert len(str(error)) < 300 < len(whole)

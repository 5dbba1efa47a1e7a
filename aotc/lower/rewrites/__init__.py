"""Operations and types that upstream lowers wrongly or not at all → others, in either half."""

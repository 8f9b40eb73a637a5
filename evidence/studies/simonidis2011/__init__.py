"""Claims of Simonidis, Stelzner, Bauer and Seemann 2011 about human motion, tried on public recordings.

    from evidence.studies import load_study

    report = load_study("human").run_study(only=["R5"])
    print(report.data["verdicts"]["R5"])

`humanoid study human` prints the report.
"""

"""The words of the reports, and the sources, each explained in a few sentences: ``badbatch explain WORD``, docs/glossary.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ...harness.exit_codes import ExitCode
from ...harness.sources.base import Source, in_memory, on_disk


@dataclasses.dataclass(frozen=True)
class Term:
    """One word and what it means."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()
    """Other words under which it is found."""
    see: tuple[str, ...] = ()
    """Related words."""


def _names(sources: Iterable[Source]) -> str:
    return ", ".join(source.name for source in sources)


WORDS: tuple[Term, ...] = (
    Term("again", "In a failure: the command that runs exactly this trial once more.", see=("trial",)),
    Term("all in", "In a failure: every scenario and topology in which the same failure was seen."),
    Term("batch", "What one call of next() on the loader's iterator returns."),
    Term("because", "In a verdict: the reason that was given for it, for example by an entry of a known file."),
    Term("cell", "One source in one topology. In a report's matrix: one column.", see=("source", "topology")),
    Term(
        "check",
        "One promise, judged on the record of a trial by a pure function. Its id is stable: use it with --check and in known "
        "files. badbatch list checks shows all.",
    ),
    Term(
        "clean",
        "The scenario without any fault. It runs in every cell first: a loader that fails it cannot be blamed for what it does "
        "with faults there, so those trials are inconclusive.",
        see=("cell", "inconclusive"),
    ),
    Term(
        "collateral",
        "A good sample that was lost because it was in the same batch as a damaged one, and the loader reported that batch by an "
        "error. This is allowed for a loader that raises: at most batch_size - 1 samples for each damaged one.",
    ),
    Term("command", "In a report: the command that made it, and when it was run.", also=("run",)),
    Term("compared", "In a failure of a relation: its trials, each with its role.", see=("relation", "role")),
    Term(
        "contested",
        "The state of a sample in a corpus on disk about which the reference decoders disagree, or which they accept although "
        "content was lost. A loader may deliver it or skip it, but must do one of the two.",
        see=("corpus", "damaged"),
    ),
    Term(
        "contract",
        "What a loader promises: what it does on damage, after an error, with short batches and with the remainder. It is "
        "declared with @loader(…), or inferred.",
        see=("declared", "inferred"),
    ),
    Term(
        "corpus",
        "The folder of a source on disk, with a manifest that says for each sample whether it is good or damaged. badbatch corpus "
        "make makes one; the suite makes one for each scenario on disk.",
        see=("manifest", "recipe"),
    ),
    Term(
        "cut",
        "The trial was ended by badbatch before the loader was done: it stalled, or its deadline was over.",
        see=("stalled", "out of time"),
    ),
    Term(
        "damaged",
        "The state of a sample that must not arrive as a good one: its fault makes the read fail, or return something wrong.",
        also=("bad",),
    ),
    Term("deadline", "How long one trial may take, in seconds, before it is cut. --deadline sets it.", see=("cut",)),
    Term("declared", "In the head of a report: the parts of the contract that the loader's author wrote in @loader(…)."),
    Term(
        "diagnosis",
        "The likely cause of a failure, found from the pattern of the trial's record, with a fix. Where no pattern fits there is "
        "none. badbatch list diagnoses shows all.",
        also=("likely",),
    ),
    Term("doubled", "In a failure: the samples that arrived more than once in one epoch, where nothing allows it."),
    Term(
        "drop-in class",
        "A loader whose first parameter is dataset. It is called as its users call it, like torch's DataLoader.",
    ),
    Term(
        "ended",
        "How the trial ended: ended (the loader's epochs were complete), gave up (the consumer stopped after too many "
        "errors), never began (the loader could not be built), stalled, out of time, exit code N or killed by signal N.",
        also=("gave up", "never began"),
        see=("stalled", "out of time"),
    ),
    Term("epoch", "One pass over the data: from iter(loader) to the end of the iterator."),
    Term(
        "factory", "A loader that is a function: factory(job) returns an iterable of batches. docs/loaders.md has the contract."
    ),
    Term(
        "fail",
        "A verdict: the loader broke the promise in this trial, and did it again when the trial was repeated.",
        also=("F",),
    ),
    Term(
        "fault",
        "What goes wrong when one sample is read (in memory), or what is wrong with a stored sample (on disk). badbatch list "
        "faults shows all.",
    ),
    Term(
        "files",
        "In a failure: the files of the samples, in the corpus of the trial. badbatch replay FOLDER --keep-corpus DIR makes that "
        "corpus again.",
    ),
    Term(
        "Fix these first",
        "At the end of a report: the broken promises, those that lose the most samples first, each with its likely cause.",
        see=("lost", "diagnosis"),
    ),
    Term(
        "flaky",
        "A verdict that was not the same in each run of the trial: the check failed in some runs and held in others. Most often a "
        "race, for example after the death of a worker. --repeat 20 measures the rate.",
        also=("unsteady", "~"),
    ),
    Term(
        "follows",
        "In a failure: other checks that failed in the same trial only because this one failed. They are not shown on their own.",
        also=("follows from",),
    ),
    Term("good", "The state of a sample that must arrive, once in each epoch."),
    Term("hangs", "The state of a stored sample whose read never returns, such as a named pipe without a writer."),
    Term("happened", "In a failure: what the record of the trial shows."),
    Term("history", "The immutable record of a trial, as the checks read it.", also=("record",)),
    Term(
        "inconclusive",
        "A verdict: the trial cannot show whether the promise was kept, and the report says why. Often the fault never took "
        "hold, the loader already failed the clean scenario, or the machine ended the trial. It is not a pass: the exit code is "
        f"{ExitCode.INCONCLUSIVE.value}.",
        also=("?", "could not be told"),
        see=("took hold", "clean"),
    ),
    Term(
        "inferred",
        "In the head of a report: the parts of the contract that were not declared. They were observed in a probe, and the loader "
        "must then keep them in every topology.",
        see=("probe",),
    ),
    Term("interrupted", "The trial was cut because the user stopped the run (Ctrl-C)."),
    Term("isolation", "How a trial gets processes of its own: fork (from a zygote) or spawn (a new interpreter)."),
    Term("job", "What a loader factory is given: the data, the batch size, the number of workers, its rank and so on."),
    Term(
        "known",
        "A verdict: the check failed, and the loader's owner listed this failure in a known file with a reason. It does not fail "
        "the run. An entry that no longer matches a failure does.",
        also=("known failure", "known file", "k"),
    ),
    Term(
        "leftover",
        "What outlived the loader after it was closed: a process, a thread, an open file, shared memory or a temporary file.",
        also=("leftovers", "leak"),
    ),
    Term(
        "lost",
        "In a failure: good samples that should have arrived and did not, and that nothing accounts for (no error, no skip "
        "report, no drop_last). After the numbers the report says in whose share they were.",
    ),
    Term("lost trial", "The process that owns the trial died, so that it has no result. It is run again."),
    Term(
        "manifest",
        "The file manifest.badbatch of a corpus: one line for each sample, with its state. docs/corpus-manifest.md has its schema.",
    ),
    Term(
        "mark",
        "A policy for damage: the sample arrives, and is marked as missing (None, or a mask).",
        see=("raise", "skip", "substitute"),
    ),
    Term(
        "missing",
        "The state of a stored sample that is not there: a loader that lists the folder never sees it, a loader with an index does.",
    ),
    Term(
        "n/a",
        "Not applicable: the check or the trial asks for something that the contract does not have, or that this machine cannot "
        "do. The report says why.",
        also=("not applicable", "-"),
    ),
    Term("note", "In a report: something that was different from what was asked, for example a longer timeout."),
    Term(
        "observed",
        "At the head of a report: what the trials showed of the loader, before anything is judged. bad sample: what one bad sample "
        "costs. errors: what comes after the first error. hung read and death: what happens when a read hangs, and when a worker "
        "dies. skips: how many were reported, and with which reasons. delay: how long it takes until the consumer is informed. "
        "batches: what it means that each worker puts its own samples into batches. kept: what the process keeps until it exits.",
        also=("bad sample", "errors", "hung read", "death", "skips", "delay", "batches", "kept"),
        see=("contract", "trial"),
    ),
    Term(
        "odd",
        "The state of a sample that is unusual but legal, such as a grey picture or a name with spaces. It is good, and must arrive.",
        also=("oddity", "oddities", "legal oddity"),
    ),
    Term("out of time", "The trial had not ended at its deadline, although it was still working.", see=("deadline", "stalled")),
    Term("pass", "A verdict: the trial tried the promise, and the loader kept it.", also=(".",)),
    Term(
        "persistent",
        "Part of a topology: the loader must keep its workers from one epoch to the next.",
        see=("topology",),
    ),
    Term(
        "probe",
        "A short run of the loader before the suite, which shows what the contract does not say: without workers what the loader does "
        "with damage, with workers who reads and who makes the batches.",
        see=("inferred",),
    ),
    Term(
        "process",
        "Of a trial that was cut: what one of its processes was doing at that time. The same lines are in ended.json.",
    ),
    Term("promised", "In a failure: the part of the contract that was broken."),
    Term(
        "raise",
        "A policy for damage: the loader raises an error for the batch of the damaged sample.",
        see=("collateral", "skip"),
    ),
    Term(
        "raised",
        "In a failure: the first error that the loader raised in the trial, with its causes (caused by …), if what "
        "happened does not say it already. Look at it first: it often explains what is lost.",
        see=("happened",),
    ),
    Term(
        "rank",
        "One process of a distributed training job, with its share of the samples. A topology with ranks=2 runs two of them.",
        also=("ranks",),
    ),
    Term("recipe", "Everything that decides the bytes of a corpus: kind, samples, faults, seed. It is in corpus.badbatch."),
    Term(
        "relation",
        "One promise, judged on the records of several trials of one loader by a pure function: for example on the same trial with and "
        "without workers. It is asked of one of these trials. badbatch list checks shows relations among the checks.",
        also=("relations",),
        see=("check", "role", "compared"),
    ),
    Term(
        "replay",
        "To run a stored trial again, or all trials of a stored relation: badbatch replay FOLDER. badbatch judge FOLDER judges the "
        "records without a run.",
    ),
    Term("role", "What a trial is for a relation: the one of which it is asked, or one that is compared with it.", see=("relation",)),
    Term(
        "samples",
        "The samples of a trial, known by their ids 0, 1, 2 … In a failure: those that show it.",
        also=("sample", "id"),
    ),
    Term(
        "scenario",
        "A named set of faults, the samples that have them, and the settings of the job, with the reason why users meet it. "
        "badbatch list scenarios shows all.",
    ),
    Term("seed", "In a report: the number that decides everything random. The same seed gives the same faults."),
    Term(
        "skip",
        "A policy for damage: the loader leaves the sample out, and reports it (job.on_skip or skipped).",
        see=("raise", "substitute"),
    ),
    Term("slow", "The state of a stored sample that is good but comes late."),
    Term(
        "sometimes",
        "In a failure: other scenarios and topologies in which the same failure was seen, but not in each run.",
        see=("flaky",),
    ),
    Term(
        "source",
        f"What is offered to the loader: a data set in memory ({_names(in_memory())}), or a corpus on disk "
        f"({_names(on_disk())}). badbatch list sources shows all.",
        also=("sources",),
    ),
    Term(
        "stalled",
        "The trial was cut because nothing happened in it any more: no event was recorded, and no process used the processor. Or its "
        "record or its processes prove that it will not end.",
        see=("cut", "deadline"),
    ),
    Term(
        "state", "What a manifest says about a stored sample: good, damaged, contested, hangs, slow or missing.", also=("states",)
    ),
    Term(
        "substitute",
        "A policy for damage: a good sample arrives in place of the damaged one, and it is counted.",
        see=("raise", "skip"),
    ),
    Term(
        "tail",
        "What a loader does if the number of samples is not a multiple of the ranks: pad repeats samples until the shares "
        "are equal, drop leaves the remainder out, exact does neither.",
        also=("pad", "padding", "drop", "exact", "remainder"),
    ),
    Term(
        "took hold",
        "A fault took hold (had an effect) when a process read the sample that has it. A fault that never took hold makes a "
        "trial inconclusive.",
        also=("take hold", "struck"),
    ),
    Term(
        "topology",
        "The number of workers and of ranks, and the start method of the workers: workers=2,ranks=2,spawn. It must never change "
        "which samples arrive.",
        see=("worker", "rank", "persistent"),
    ),
    Term(
        "trial",
        "One run of one loader in one scenario under one topology, in processes of its own. Its id looks like "
        "one-bad[workers=2,ranks=2]; source=… is added where the source is not map.",
    ),
    Term(
        "trial supervisor", "The process that owns one trial: it starts the ranks, enforces the deadline, and ends the remaining processes."
    ),
    Term(
        "verdict",
        "The result of a check on a trial: fail, inconclusive, pass, n/a or known.",
        see=("fail", "flaky", "inconclusive", "known"),
    ),
    Term("versions", "In a report: each library that the loader's module and its project import, with its version."),
    Term("worker", "A process (or thread) of the loader that reads samples for one rank.", also=("workers",)),
    Term(
        "zygote",
        "A process that has imported the loader's module, and forks one process for each trial, so that a trial starts fast.",
    ),
)

SOURCES: tuple[Term, ...] = tuple(Term(source.name, source.about) for source in (*in_memory(), *on_disk()))

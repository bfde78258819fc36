"""The fact groups of a record, typed: what reading, validating and the published schema use."""

from __future__ import annotations

from llamaops.estimate.fit_facts import FitFacts
from llamaops.facts.accelerator import AcceleratorFacts
from llamaops.facts.asked import AskedFacts
from llamaops.facts.binaries import BinariesFacts, BinaryFacts
from llamaops.facts.build_names import BuildNamesFacts
from llamaops.facts.canary import CanaryFacts
from llamaops.facts.companions import CompanionFacts
from llamaops.facts.exposure import ExposureFacts
from llamaops.facts.generation import GenerationFacts
from llamaops.facts.gguf_file import GgufFacts
from llamaops.facts.host import HostFacts
from llamaops.facts.hub import HubFacts
from llamaops.facts.launch import LaunchFacts
from llamaops.facts.lifecycle import LifecycleFacts
from llamaops.facts.load_log import LoadFacts
from llamaops.facts.model_digest import DigestFacts
from llamaops.facts.model_identity import IdentityFacts
from llamaops.facts.runbook_run import RunbookFacts
from llamaops.facts.settings import SettingsFacts
from llamaops.facts.sockets import OwnerFacts, SocketFacts
from llamaops.facts.templates import TemplatesFacts
from llamaops.facts.tensor_values import TensorValuesFacts
from llamaops.probes.concurrency import ConcurrencyFacts
from llamaops.probes.drain import DrainFacts
from llamaops.probes.more import MoreFacts
from llamaops.probes.router import RouterFacts
from llamaops.probes.server import ServerFacts
from llamaops.probes.sleep import SleepFacts
from llamaops.probes.surface import SurfaceFacts
from llamaops.record.record import Document, Record
from llamaops.schema.diagnosis import Diagnosis
from llamaops.schema.shape import Shape


class Facts(Shape, frozen=True, kw_only=True):
    """Every fact group a record can hold; none means that the command did not collect it."""

    settings: SettingsFacts | None = None
    """Where each setting came from."""
    asked: AskedFacts | None = None
    """The run as it was asked for."""
    host: HostFacts | None = None
    """The machine as the process sees it."""
    accelerators: AcceleratorFacts | None = None
    """Devices, drivers and toolkits."""
    binaries: BinariesFacts | None = None
    """Every llama.cpp program found."""
    binary: BinaryFacts | None = None
    """The program that was run."""
    model: GgufFacts | None = None
    """The model file."""
    identity: IdentityFacts | None = None
    """What the model file is for, what it is made of, and where it says that it comes from."""
    companions: CompanionFacts | None = None
    """Projector, adapters and draft of the model."""
    templates: TemplatesFacts | None = None
    """The chat templates, compiled and rendered."""
    hub: HubFacts | None = None
    """What a hub said about a file before it was downloaded."""
    digests: DigestFacts | None = None
    """Digests of the model's files: computed, declared and expected."""
    tensor_values: TensorValuesFacts | None = None
    """What reading all tensor data showed."""
    build_names: BuildNamesFacts | None = None
    """What the names in the program's files say about the model."""
    fit: FitFacts | None = None
    """What a load will take in memory, worked out beforehand."""
    launch: LaunchFacts | None = None
    """The command line that was made for this build."""
    lifecycle: LifecycleFacts | None = None
    """How our server came up and ended."""
    load: LoadFacts | None = None
    """What the load log shows."""
    sockets: SocketFacts | None = None
    """Which addresses the server really listens on."""
    owner: OwnerFacts | None = None
    """Who answers at the address of a server that already ran."""
    server: ServerFacts | None = None
    """What the server answered."""
    concurrency: ConcurrencyFacts | None = None
    """What several requests at once showed."""
    router: RouterFacts | None = None
    """The models behind a router."""
    sleep: SleepFacts | None = None
    """A server that puts its model away when nobody asks."""
    surface: SurfaceFacts | None = None
    """Every endpoint, the error contract, and what is exposed."""
    drain: DrainFacts | None = None
    """A request that ran when its server was stopped."""
    more: MoreFacts | None = None
    """A client that goes away, reasoning, structured output, tools, and the edge of the context."""
    generation: GenerationFacts | None = None
    """What a bounded generation gave."""
    diagnosis: Diagnosis | None = None
    """What the logs and answers mean, taken together."""
    canary: CanaryFacts | None = None
    """Two builds side by side."""
    exposure: ExposureFacts | None = None
    """What was decided about who may reach the server."""
    runbook: RunbookFacts | None = None
    """How a run of a runbook went, step by step."""


StoredRecord = Record[Facts]
StoredDocument = Document[Facts]

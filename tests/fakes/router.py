"""The fake llama-server as a router of several models, and as a server that sleeps: honest, or with a lie."""

from __future__ import annotations

import copy
import sys
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.llama_server import Handler, State
    from tests.fakes.server_console import Options
    from tests.fakes.server_lies import Behaviour

LOAD_S = 0.2
QUIET = frozenset({"/health", "/v1/models", "/models", "/props", "/tools", "/cors-proxy"})
"""Paths that leave a sleeping server asleep."""


def _log(text: str) -> None:
    print(f"0.09.000.001 I que    start_loop: {text}", file=sys.stderr, flush=True)


class Router:
    """Models by name; the last of the list is the one that the lie is about."""

    def __init__(self, options: Options, lie: Behaviour, make: Callable[[Options, Behaviour], State]) -> None:
        self.lie = lie.router
        self.names = options.values["--models"].split(",")
        self.autoload = "--no-models-autoload" not in options.flags
        self.most = int(options.values.get("--models-max", "4"))
        self.up = [name for name in options.values.get("--loaded", "").split(",") if name]
        self.failed: set[str] = set()
        self.loading: set[str] = set()
        self.states: dict[str, State] = {}
        for number, name in enumerate(self.names):
            own = copy.copy(options)
            own.aliases = [name]
            own.figures = {**options.figures, "n_params": 1000 * (number + 1)}
            self.states[name] = make(own, lie)
            self.states[name].accent = f"By the book of {name}, and of nobody else, it is so: "

    def answer(self, handler: Handler, path: str, query: str, request: dict[str, Any]) -> bool:
        """Answer what a router answers itself, or choose the model that does; true where it answered."""
        own = {
            "/v1/models": self._list, "/models": self._list, "/models/load": self._load,
            "/tools": None, "/cors-proxy": None,
        }  # fmt: skip
        if path in own:
            route = own[path]
            if route is not None:
                route(handler, request)
            return route is not None
        asked = parse_qs(query)
        name = request.get("model") or next(iter(asked.get("model", [])), None)
        if path == "/props" and name is None:
            self._props(handler)
            return True
        if name is None:
            handler._error(400, "model name is missing from the request", "invalid_request_error")
            return True
        if name not in self.states:
            handler._error(400, f"model '{name}' not found", "invalid_request_error")
            return True
        may_load = self.autoload and asked.get("autoload") != ["false"]
        if name not in self.up and not self._loaded(handler, name, may_load=may_load):
            return True
        handler.state = self._state(name, path)
        return False

    def _state(self, name: str, path: str) -> State:
        """Return the model that answers for a name, which a lie makes another one."""
        first, last = self.names[0], self.names[-1]
        if name == last and path == "/v1/chat/completions":
            if self.lie == "silent":
                time.sleep(3600)
            if self.lie == "other-name":
                return self.states[first]
            if self.lie == "one-for-all":
                pretends = copy.copy(self.states[first])
                pretends.options = copy.copy(pretends.options)
                pretends.options.aliases = [last]
                return pretends
        return self.states[name]

    def _loaded(self, handler: Handler, name: str, *, may_load: bool) -> bool:
        if not may_load:
            handler._error(400, "model is not loaded", "invalid_request_error")
            return False
        self._bring_up(name)
        if name in self.failed:
            handler._error(500, f"model name={name} failed to load", "server_error")
        return name not in self.failed

    def _bring_up(self, name: str) -> None:
        self.loading.add(name)
        if self.lie == "never-loads" and name == self.names[-1]:
            time.sleep(3600)
        time.sleep(LOAD_S)
        self.loading.discard(name)
        if name.startswith("broken"):
            self.failed.add(name)
            return
        if self.most and len(self.up) >= self.most:
            del self.up[0]
        self.up.append(name)

    def _load(self, handler: Handler, request: dict[str, Any]) -> None:
        threading.Thread(target=self._bring_up, args=(request["model"],), daemon=True).start()
        handler._json({"success": True})

    def _word(self, name: str) -> str:
        if self.lie == "says-unloaded" and name == self.names[-1]:
            return "unloaded"
        return "loaded" if name in self.up else "loading" if name in self.loading else "unloaded"

    def _list(self, handler: Handler, _request: object) -> None:
        data: list[dict[str, object]] = []
        for name, state in self.states.items():
            status: dict[str, object] = {"value": self._word(name), "args": ["llama-server"]}
            if name in self.failed:
                status.update(failed=True, exit_code=1)
            meta = state.options.figures if name in self.up else None
            data.append({"id": name, "aliases": [], "object": "model", "status": status, "meta": meta})
        handler._json({"object": "list", "data": data})

    def _props(self, handler: Handler) -> None:
        handler._json(
            {
                "role": "router", "max_instances": self.most, "models_autoload": self.autoload,
                "model_alias": "llama-server", "model_path": "none", "build_info": "b1-7e4c0a9",
                "default_generation_settings": {"params": None, "n_ctx": 0}, "cors_proxy_enabled": False,
            }
        )  # fmt: skip


class Sleep:
    """When a fake with --sleep-idle-seconds sleeps, and what its lie makes of that."""

    def __init__(self, options: Options, lie: Behaviour) -> None:
        self.lie = lie.sleep
        self.idle_s = float(options.values.get("--sleep-idle-seconds", "0"))
        self.asleep = "--asleep" in options.flags
        self.said_awake = self.asleep
        self.used = time.monotonic()
        if self.idle_s:
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            time.sleep(0.05)
            idle = time.monotonic() - self.used >= self.idle_s
            if idle and not self.asleep and self.lie != "never-sleeps":
                self.asleep = True
                _log("entering sleeping state")

    @property
    def says(self) -> bool:
        """Return what /props says."""
        if self.lie == "says-awake":
            return False
        return self.asleep or (self.lie == "says-asleep" and self.said_awake)

    def meet(self, handler: Handler, path: str) -> bool:
        """Wake where a path wakes; true where the lie answered instead."""
        wakes = path not in QUIET or (self.lie == "health-wakes" and path == "/health")
        if not self.asleep:
            self.used = time.monotonic() if wakes else self.used
            return False
        self.said_awake = True
        if not wakes:
            return False
        if self.lie == "never-wakes":
            time.sleep(3600)
        if self.lie == "fails-to-wake":
            handler._error(500, "failed to load model", "server_error")
            return True
        time.sleep(LOAD_S)
        self.asleep, self.used = False, time.monotonic()
        _log("exiting sleeping state")
        return False

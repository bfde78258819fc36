"""The words that published types allow: a user or host of the same name must not make a record invalid."""

from __future__ import annotations

# Held against the schema by tests/contract/test_examples.py; a new word of a Literal is added here.
PUBLISHED_WORDS = frozenset(
    """
    PATH absent adapter advisory api_response apk architecture asked bad_interpreter bad_response
    baseline bench benchmark beside bin_dir binary block_device broken broken_symlink buffer_type
    build_folder by_option bzip2 certain character_device chat closed cls command common completion
    computed concurrency conda config_file contributing control control_vector crashed cut cut_short
    declined default default_changed deprecated device diffusion directory done dpkg draft earlier
    echo embedding embeddings empty ended_by_itself ending engine_variable error error_event exclusive_process
    exclusive_thread executable exposure failed fatal fault fifo file first_sigterm fit-params
    flatpak flooded generated_output ggml_old gguf given guix gzip harmless hdf5 hold homebrew host
    host_share html http illegal_instruction image imatrix incomplete indented info interrupted json
    known larger_budget last lfs_pointer library library_too_old likely linked llama_state
    llamaops.document llamaops.record loading local log lora lora_adapter lz4 mapped mean memory
    missing_library mmproj model model_file model_load needs_key network nix no_answer no_fault
    no_permission none not_asked not_attempted not_ended not_executable not_found not_judged
    not_needed not_observed not_run not_running not_selected not_started not_tested null numpy
    operator ours out_of_scope overlay pacman passed pdf pickle plugin possible pre_tokenizer
    primary prohibited projector proxy punctuation pytorch_zip rank rar raw reached recovered
    redacted refused refuses refuses_as_documented regular remote renamed rendered repeated
    replacement required reranker rpm safetensors same second_sigterm server sigkill skipped snap
    socket source speech sqlite stderr stdout still_serving stopped stopped_at_bound switch
    switched_off symptom takes_other_value tar tensor_type text thinking_off timed_out too_large
    too_long too_slow undefined_symbol unknown unparsed unreachable unrecognised unsupported
    user_space valued vanished vocabulary warn wheel whitespace whole works wrong wrong_architecture
    xml zeros zip zstd
    """.split()  # noqa: SIM905 - words read better one after the other
)

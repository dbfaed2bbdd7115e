"""The whole page: a header, one tab a task, served at `/`."""

import os
from pathlib import Path

import gradio as gr
from fastapi import FastAPI

from serving.client import Client
from ui import classify, compare, figures, identify, read, similar, verify
from ui.gallery import FOLDER as GALLERY
from ui.samples import draw_samples
from ui.theme import HEAD, THEME
from ui.visitor import VisitorClient
from ui.words import draw_words

HERE = Path(__file__).parent

HEADER = """
<header class="rl-header">
  <svg class="rl-mark" viewBox="0 0 32 32" aria-hidden="true">
    <path d="M27 4C14 4 5 10 5 20c0 3 1 6 3 8 2-9 7-14 13-17-5 4-9 9-11 18 11 1 18-8 17-25z"/>
  </svg>
  <div><h1>Readleaf</h1><p>Ask a picture a question.</p></div>
  <nav><a href="docs">API</a></nav>
</header>
"""


def build_page(client: Client, folder: Path) -> gr.Blocks:
    """All tabs, each built by its own module; what visitors upload and what is drawn for them is kept in `folder`."""
    samples = draw_samples(folder / "samples")
    # Uploads are looked at hourly and kept for a day at most.
    page: gr.Blocks
    with gr.Blocks(title="Readleaf", analytics_enabled=False, delete_cache=(3600, 86400)) as page:
        gr.HTML(HEADER, padding=False)
        with gr.Tabs() as tabs:
            similar.build_tab(page, client, folder / "uploads", samples["sunflower"])
            classify.build_tab(page, client, samples["sunflower"])
            identify.build_tab(page, client, samples["sunflower"])
            verify.build_tab(tabs)
            figures.build_tab(page, client)
            read.build_tab(client, draw_words(folder / "samples"))
            compare.build_tab(client, samples)
    return page


def mount_page(app: FastAPI, api_url: str, *, data_dir: Path, max_file_size: int) -> None:
    """Mount the page at `/` of the API's own app; what visitors upload is kept below `data_dir`."""
    folder = data_dir / "page"
    os.environ["GRADIO_TEMP_DIR"] = str(folder / "uploads")
    gr.mount_gradio_app(
        app,
        build_page(VisitorClient(api_url), folder),
        path="/",
        theme=THEME,
        css_paths=[HERE / "style.css", HERE / "verify.css"],
        head=HEAD,
        max_file_size=max_file_size,
        allowed_paths=[str(folder / "samples"), str(GALLERY)],
        favicon_path=str(HERE / "favicon.svg"),
        footer_links=[],
        ssr_mode=False,
        show_error=True,
        run_history=False,
    )

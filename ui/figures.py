"""Figures: how a collection's review goes, and how good the models are by what experts say."""

from functools import partial

import gradio as gr

from serving.client import Client
from ui import figures_result
from ui.manage import PRIVATE, REFUSALS, names


def build_tab(page: gr.Blocks, client: Client) -> None:
    """Add the tab to the page that is being built."""
    with gr.Tab("Figures", id="figures") as tab:
        with gr.Row():
            collection = gr.Dropdown(label="Collection", elem_id="figures-collection", interactive=True, scale=3)
            again = gr.Button("Count again", elem_id="figures-again", scale=0, min_width=140)
        result = gr.HTML(elem_id="figures-result", padding=False)
    page.load(partial(names, client), outputs=collection, **PRIVATE)
    # A tab says that it is shown only when it is chosen, so what was decided meanwhile is counted.
    gr.on([collection.change, again.click, tab.select], partial(count, client), collection, result, **PRIVATE)


def count(client: Client, collection: str | None) -> str:
    """The figures as HTML."""
    if not collection:
        return figures_result.NO_COLLECTION
    try:
        return figures_result.show(client.figures(collection), collection)
    except REFUSALS as error:
        return figures_result.refusal(str(error))

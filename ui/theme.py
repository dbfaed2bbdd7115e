"""Colours and type. Only fonts that every machine has: the page asks no other host for anything."""

import gradio as gr

SANS = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]
MONO = ["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"]

LEAF = gr.themes.Color(
    name="leaf",
    c50="#f1f8f2",
    c100="#ddeedf",
    c200="#bcdcc1",
    c300="#90c398",
    c400="#5fa56b",
    c500="#3c874a",
    c600="#2c6d39",
    c700="#24572f",
    c800="#1f4628",
    c900="#1a3a22",
    c950="#0d2013",
)

THEME = gr.themes.Base(
    primary_hue=LEAF, secondary_hue=LEAF, neutral_hue="stone", radius_size="lg", font=SANS, font_mono=MONO
).set(
    body_background_fill="#faf9f5",
    body_background_fill_dark="#161815",
    block_border_width="1px",
    block_shadow="0 1px 2px rgb(0 0 0 / 0.05)",
    button_primary_background_fill="*primary_600",
    button_primary_background_fill_hover="*primary_700",
    button_primary_text_color="white",
)

HEAD = """
<meta http-equiv="Content-Security-Policy"
      content="default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-src 'none'; object-src 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="Ask a picture a question.">
"""

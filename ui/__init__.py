"""The page: a Gradio front end that knows the service only through its client."""

from ui.page import mount_page

__all__ = ["mount_page"]

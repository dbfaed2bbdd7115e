"""What `/v1/session` takes and answers."""

from pydantic import BaseModel, Field

from serving.roles import Role


class SignIn(BaseModel):
    """A key to sign in with."""

    key: str = Field(min_length=1, max_length=200, description="an API key", examples=["rl_…"])


class SignedIn(BaseModel):
    """Whose key it was."""

    name: str = Field(description="the key's owner", examples=["Ann"])
    role: Role


class SessionInfo(BaseModel):
    """Who is asking, as far as it is known."""

    name: str | None = Field(description="the key's owner; without keys, what X-Reviewer says", examples=["Ann"])
    role: Role | None = Field(description="what the caller may do; null for a stranger")
    keys: bool = Field(description="whether callers need a key")

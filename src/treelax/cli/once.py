"""Commands that refuse an option given twice where one is expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import typer
import typer.core
from typer.models import CommandFunctionType

from treelax.errors import InputError

__all__ = ["OnceApp", "OnceCommand"]


class OnceCommand(typer.core.TyperCommand):
    """A command whose options come once, but for those that may be repeated and flags.

    Without it the last one counts and nobody is told of the others.

    Raises:
        InputError: an option comes twice.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments as typer does, after a look for repeated options."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, count in Counter(order).items():
            is_flag = getattr(parameter, "is_flag", False)
            single = not getattr(parameter, "multiple", True) and not is_flag
            if count > 1 and single and not ctx.resilient_parsing:
                name = max(parameter.opts, key=len)
                raise InputError(f"{name}: received {count} times; expected once")
        return super().parse_args(ctx, args)


class OnceApp(typer.Typer):
    """A program, or a group of its commands, all of which are `OnceCommand`.

    Example:
        >>> app = OnceApp()
        >>> _ = app.command("hello")(lambda: None)
        >>> app.registered_commands[0].cls.__name__
        'OnceCommand'
    """

    def command(
        self,
        name: str | None = None,
        *,
        cls: type[typer.core.TyperCommand] | None = None,
        **options: Any,
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add a command as typer does, of this kind unless told otherwise."""
        return super().command(name, cls=cls or OnceCommand, **options)

from datetime import timedelta

from google.protobuf.message import Message

class Duration(Message):
    seconds: int
    nanos: int
    def __init__(self, *, seconds: int = ..., nanos: int = ...) -> None: ...
    def ToTimedelta(self) -> timedelta: ...
    def FromTimedelta(self, td: timedelta) -> None: ...

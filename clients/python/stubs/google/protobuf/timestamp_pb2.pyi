from google.protobuf.message import Message

class Timestamp(Message):
    seconds: int
    nanos: int
    def __init__(self, *, seconds: int = ..., nanos: int = ...) -> None: ...
